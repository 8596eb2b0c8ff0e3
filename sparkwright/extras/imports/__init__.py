"""Recipes of other projects, as entries of this catalog.

One module for each format reads a recipe's text; ``recipes.serve_arguments`` reads the engine's
arguments; ``entries`` makes image, models and recipe of the catalog. No part of a recipe is run or
expanded.
"""
