"""docs/catalog.md, a section a system: what is known of it, and what is not."""

from collections.abc import Iterable, Iterator, Sequence

from docs.generate.markdown import table
from docs.generate.speeds import figures, hardware, in_order, short, speed_of
from sparkwright.catalog import Catalog, Image, Model, Recipe
from sparkwright.catalog.gpus import FAMILIES, architectures, family, spark_only
from sparkwright.catalog.issues import Issue
from sparkwright.catalog.measurements import Measurement


def sections(catalog: Catalog) -> Iterator[str]:
    """Every system's heading, its recipes, and a table of what is known."""
    systems: dict[str, list[Recipe]] = {}
    for recipe in sorted(catalog.recipes.values(), key=in_order):
        systems.setdefault(recipe.system, []).append(recipe)
    for system, recipes in systems.items():
        yield f"### {system}"
        yield table(
            ("recipe", "GPU", "status", "image and tag", "source"),
            (
                (
                    f"`{recipe.name}`",
                    machines(recipe, catalog),
                    recipe.status,
                    f"{recipe.image}:{_tag(recipe, catalog)}",
                    recipe.source,
                )
                for recipe in recipes
            ),
        )
        yield table(("", ""), _facts(recipes, catalog))


def machines(recipe: Recipe, catalog: Catalog) -> str:
    """The GPUs that it is made for, and what its image makes of that."""
    families = ", ".join(family(cap) for cap in recipe.needs.compute_caps)
    published = architectures(recipe, catalog)
    if any(FAMILIES[cap].architecture not in published for cap in recipe.needs.compute_caps):
        return f"{families}, as its card says; its image is for {', '.join(published)} alone"
    return f"{families} only" if spark_only(recipe, catalog) else families


def _tag(recipe: Recipe, catalog: Catalog) -> str:
    return recipe.tag or catalog.images[recipe.image].newest_tag


def _facts(recipes: list[Recipe], catalog: Catalog) -> Iterator[Sequence[str]]:
    images = list({recipe.image: catalog.images[recipe.image] for recipe in recipes}.values())
    models = list(_models(recipes, catalog).values())
    entries: list[Image | Model] = [*images, *models]
    yield "run on hardware with this tool", hardware(recipes)
    claims = [f"{gpu.gpu}: {gpu.claim}{f' ({gpu.note})' if gpu.note else ''}; {gpu.source}"
              for entry in entries for gpu in entry.gpus]  # fmt: skip
    yield "GPUs, as the cards say", _lines(claims) if claims else "no card names any for these"
    yield "published figures", _lines(_published(recipes, catalog))
    issues = dict.fromkeys(
        f"[`{issue.id}`](rules.md)" for recipe in recipes for issue in _issues(recipe, catalog)
    )
    expected = [f"`{model.name}`: {bad}" for model in models for bad in model.known_bad]
    yield "known issues", _lines([", ".join(issues), *expected])
    yield "tags that it is planned on", ", ".join(_tags_of(recipes, catalog))
    yield "licence", _lines([f"{_name(entry)}: {_license(entry)}" for entry in entries])
    duties = {duty: entry.duties.source for entry in entries if entry.duties
              for duty in entry.duties.duties}  # fmt: skip
    yield "the operator's duties", _lines(f"{duty} ({text})" for duty, text in duties.items())
    notes = dict.fromkeys(note for recipe in recipes for note in recipe.notes)
    yield "notes", _lines(notes)


def _models(recipes: Iterable[Recipe], catalog: Catalog) -> dict[str, Model]:
    mounted = [item for recipe in recipes for item in (recipe.body, recipe.drafter) if item]
    return {item.model: catalog.models[item.model] for item in mounted}


def _tags_of(recipes: Iterable[Recipe], catalog: Catalog) -> list[str]:
    """Tags that a recipe of the system runs on, the newest first as the catalog has them."""
    result = [
        f"`{recipe.image}:{tag}`"
        for recipe in recipes
        for tag in recipe.tags
        or ([recipe.tag] if recipe.tag else catalog.images[recipe.image].tags)
    ]
    return list(dict.fromkeys(result))


def _published(recipes: list[Recipe], catalog: Catalog) -> Iterator[str]:
    served = {
        (recipe.image, recipe.body.model, recipe.drafter and recipe.drafter.model)
        for recipe in recipes
    }
    for name, item in sorted(catalog.measurements.items()):
        if (item.image, item.body, item.drafter) in served:
            status = "" if item.status == "measured" else f", {item.status}"
            tag = item.tag or "no tag"
            yield f"{item.title}{_range(item)} ({item.gpu}, {tag}{status}; `{name}`)"


def _range(entry: Measurement) -> str:
    rows = [row for row in entry.rows if short(row) and speed_of(row) is not None]
    return f": {figures(entry, rows).partition(',')[0]} tokens/s of one stream" if rows else ""


def _issues(recipe: Recipe, catalog: Catalog) -> Iterator[Issue]:
    """Of the image's issues those that this body, drafter and tag can meet."""
    tag, image = _tag(recipe, catalog), catalog.images[recipe.image]
    expected = {
        "body.family": catalog.models[recipe.body.model].family,
        "speculative.method": "dflash" if recipe.drafter else None,
    }
    mounted = _models([recipe], catalog).values()
    for issue in (*image.issues, *(issue for model in mounted for issue in model.issues)):
        if issue.tags and tag not in issue.tags:
            continue
        if any(
            all(when[fact].holds(value) for fact, value in expected.items() if fact in when)
            for when in issue.when
        ):
            yield issue


def _name(entry: Image | Model) -> str:
    return f"`{entry.name}`"


def _license(entry: Image | Model) -> str:
    own = entry.license
    if own is None:
        return "the catalog names none"
    return f"{', '.join(word for word in (own.name, own.note) if word)} ({own.source})"


def _lines(parts: Iterable[str]) -> str:
    return "<br>".join(part for part in parts if part) or "none"
