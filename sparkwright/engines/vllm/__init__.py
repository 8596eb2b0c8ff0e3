"""What vLLM itself takes, by version."""
