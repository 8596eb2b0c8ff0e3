"""Exit codes of mistakes: equal for equal mistakes in every command."""

#: The user's input can't be used, or the plan would not be deployed: nothing was touched.
MISTAKEN = 2
