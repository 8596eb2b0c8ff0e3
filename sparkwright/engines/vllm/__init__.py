"""Arguments and variables that vLLM itself accepts, by version."""
