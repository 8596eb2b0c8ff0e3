"""Notices: their texts, their times, and their record."""
