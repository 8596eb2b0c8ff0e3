"""Recipes of other projects, as entries of this catalog.

One module for each format reads its text; ``command_line`` reads its engine command; ``entries``
makes image, models and recipe of it. Nothing of a recipe is run or expanded.
"""
