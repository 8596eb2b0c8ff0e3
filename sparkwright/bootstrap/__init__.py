"""Preparation of a bare host: its type of machine, and the work of each step on it."""
