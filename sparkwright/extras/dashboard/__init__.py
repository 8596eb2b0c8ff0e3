"""The fleet on one page: live (`dashboard`), or from stored runs and benchmarks (`report`)."""
