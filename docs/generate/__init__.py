"""Generators of the pages that are made from code and data: ``python -m docs.generate``."""
