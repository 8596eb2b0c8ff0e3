"""Tag of the image that a service runs, and the problem of a tag that can't be used."""

import datetime as dt
from collections.abc import Callable

from sparkwright.catalog import Catalog, Image, Recipe
from sparkwright.config.settings import HostSettings, ServiceSettings
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, suggest

#: Messages about the tags of the whole plan.
MESSAGES = Messages(__file__)


def chosen_tag(
    service: ServiceSettings,
    settings: HostSettings,
    recipe: Recipe,
    image: Image,
    own_key: str,
    origin: Callable[[str], str],
) -> tuple[str, str]:
    """The tag, and the key that sets the tag. A host's tag applies to images that have the tag."""
    if service.image_tag:
        return service.image_tag, own_key
    if settings.image_tag and (settings.image_tag in image.tags or not recipe.tag):
        return settings.image_tag, f"{origin('image_tag')}: image_tag"
    return recipe.tag or image.newest_tag, f"recipe {recipe.name}"


def no_such_tag(
    key: str, tag: str, recipe: Recipe, image: Image, catalog: Catalog, host: str
) -> Finding:
    """Finding about a tag that the image lacks, or that the recipe does not run on."""
    moves = any(tag in data.names for data in image.tags.values())
    message = "not-on-tag" if tag in image.tags else "moving-tag" if moves else "no-tag"
    instead = _instead_of(tag, recipe, image, catalog)
    facts = {"recipe": recipe.name, "tag": tag, "image": image.name, "instead": instead}
    return MESSAGES.mistake(message, key, host, **facts)


def _instead_of(tag: str, recipe: Recipe, image: Image, catalog: Catalog) -> str:
    """Remedy for a tag that the recipe does not run on.

    For an existing tag of the image, the remedy names recipes that run on this tag. ``latest`` and
    similar names mean the last tag that had the name.
    """
    named = {name: data.date for name, data in image.tags.items() if tag in data.names}
    if named and tag not in image.tags:
        newest = max(named, key=lambda name: named[name] or dt.date.min)
        return f"image_tag: {newest} (the last tag that had the name {tag}), or leave image_tag out"
    if tag not in image.tags:
        tags = list(recipe.tags or image.tags)
        return f"{suggest(tag, tags)} (a new tag is a few lines in the catalog)"
    family = catalog.models[recipe.body.model].family
    there = sorted(
        other.name
        for other in catalog.recipes.values()
        if other.image == image.name
        and (not other.tags or tag in other.tags)
        and catalog.models[other.body.model].family == family
    )
    if not there:
        return f"no recipe of {family} runs on this tag: name {tag} in a recipe of your own catalog"
    return f"recipe: {' or '.join(there)}, which {'runs' if len(there) == 1 else 'run'} on this tag"
