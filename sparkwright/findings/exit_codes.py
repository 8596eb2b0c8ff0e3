"""Exit codes of mistakes: the same for the same mistake, whichever command meets it."""

#: The user's input can't be used, or what is planned would not be deployed: nothing was touched.
MISTAKEN = 2
