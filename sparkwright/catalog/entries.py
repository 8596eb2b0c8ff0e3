"""The entries that services are made of, each in a module of its subject."""

from sparkwright.catalog.images import Build, Digest, Image, ImageSize, Tag, Variables
from sparkwright.catalog.models import ContentCheck, Format, KvLayers, Model, Sampling
from sparkwright.catalog.recipes import Alias, Mounted, Needs, Ranks, Recipe, TagChange

__all__ = [
    "Alias",
    "Build",
    "ContentCheck",
    "Digest",
    "Format",
    "Image",
    "ImageSize",
    "KvLayers",
    "Model",
    "Mounted",
    "Needs",
    "Ranks",
    "Recipe",
    "Sampling",
    "Tag",
    "TagChange",
    "Variables",
]
