"""Texts, times and record of notices."""
