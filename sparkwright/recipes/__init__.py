"""Recipes of other projects, as entries of this catalog.

One module for each format reads somebody else's text; ``arguments`` and ``command_line`` read what
it starts; ``entries`` makes image, models and recipe of it. Nothing of a recipe is run or expanded.
"""
