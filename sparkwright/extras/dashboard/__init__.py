"""The fleet on one page: the last run, what was measured, and what was switched when."""
