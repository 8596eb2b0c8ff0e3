"""The fleet on one page: live (`dashboard`), or as runs and benchmarks left it (`report`)."""
