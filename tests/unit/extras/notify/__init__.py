"""Notices: what is said, when, and what is remembered."""
