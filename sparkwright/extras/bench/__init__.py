"""Measurements of a service: kept as files, compared with the cards."""
