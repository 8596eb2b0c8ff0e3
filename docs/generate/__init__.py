"""Generators of the pages made from code and data: ``python -m docs.generate``."""
