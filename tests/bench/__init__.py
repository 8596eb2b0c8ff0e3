"""The real load generator against the stand-in: make test-bench."""
