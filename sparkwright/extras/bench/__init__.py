"""Measurements of a service: kept as files, compared with the cards and its own past."""
