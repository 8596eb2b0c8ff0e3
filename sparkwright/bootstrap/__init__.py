"""Preparation of a bare host: the host's type of machine, and the work of each step."""
