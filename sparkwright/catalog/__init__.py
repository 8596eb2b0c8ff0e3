"""The catalog: images, models, recipes, measurements and advice, as the cards publish them."""

from sparkwright.catalog.containers import Exceptions, refuse_privileged
from sparkwright.catalog.data import ArgumentValue, Name, Scalar
from sparkwright.catalog.entries import (
    Alias,
    Image,
    Model,
    Mounted,
    Needs,
    Ranks,
    Recipe,
    Tag,
    Variables,
)
from sparkwright.catalog.reader import Catalog, load_catalog

__all__ = [
    "Alias",
    "ArgumentValue",
    "Catalog",
    "Exceptions",
    "Image",
    "Model",
    "Mounted",
    "Name",
    "Needs",
    "Ranks",
    "Recipe",
    "Scalar",
    "Tag",
    "Variables",
    "load_catalog",
    "refuse_privileged",
]
