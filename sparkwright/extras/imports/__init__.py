"""Recipes of other projects, as entries of this catalog.

One module for each format reads its text; ``command_line`` reads its engine command; ``entries``
makes image, models and recipe of the catalog. No part of a recipe is run or expanded.
"""
