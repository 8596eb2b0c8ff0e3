"""Measurements of a service: stored as files, compared with the cards."""
