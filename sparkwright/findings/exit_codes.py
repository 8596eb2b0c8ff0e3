"""Exit codes of mistakes: every command uses the same code for the same mistake."""

#: The user's input can't be used, or the plan would not be deployed: nothing was touched.
MISTAKEN = 2
