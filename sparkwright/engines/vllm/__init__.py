"""Arguments and variables that vLLM itself takes, by version."""
