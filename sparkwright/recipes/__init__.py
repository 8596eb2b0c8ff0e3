"""Recipes of other projects, as arguments and environment of a service.

``vllm_recipes`` reads the format of vLLM's own recipes, ``serve_arguments`` reads the command that
a recipe starts, and ``carried_over`` decides which parts stay. No content of a recipe is run or
expanded.
"""
