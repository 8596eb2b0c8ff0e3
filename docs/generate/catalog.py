"""Page docs/catalog.md: contents of the catalog, and format of its entries."""

from collections.abc import Iterator, Sequence

from docs.generate.cards import CARDS
from docs.generate.markdown import GENERATED, table
from docs.generate.speeds import in_order, published
from sparkwright.catalog import Catalog, Image, Recipe
from sparkwright.catalog.gpus import FAMILIES, architectures, family, spark_only
from sparkwright.catalog.reader import KINDS, documented

_INTRODUCTION = """\
sparkwright serves the catalog's recipes without further files: the cards' recipes,
recipes for several Sparks, and other publishers' recipes for newer models.
Only DGX Sparks run AEON's arm64 images; RTX 50 boxes, H100 and H200 run stock vLLM with vLLM's own
recipes.

    sparkwright advise agents                     # recipes for a workload
    sparkwright catalog show aeon-vllm-ultimate   # a whole entry

`catalog show` prints an entry. An image's entry lists each tag's changes and faults, component
versions, variables, related images, its card's GPUs, licence and the operator's
duties. A model's entry lists files, formats, request switches, licence and duties. A recipe's entry
lists arguments, aliases with their sampling, notes, and tested hardware. A measurement contains the
card's table.

[Checks](checks.md) lists known faults. [Deviations](../catalog/DEVIATIONS.md) lists differences
between recipe and card. [not-ours.yaml](not-ours.yaml) lists missing models and uses."""

_CARDS = """\
Facts and figures come from the publishers' cards of the given day. Pages, messages and `source` in
the catalog cite cards by these names, with the section. If two cards contradict each other for one
tag, the newer dated statement holds, and a comment in the catalog's file cites both. "vLLM as
observed" means input and output of real vLLM servers. "sparkwright" marks this project's own
values, and "sparkwright, after …" its summary of others' observations."""

_RECIPES = """\
Speeds are tokens a second of a single stream for code, with the range over all prompts in
brackets, from the cards' tables for a DGX Spark. **No recipe of this catalog has run on real
hardware with sparkwright yet**, unless its row names the run."""

_ALIASES = """\
An alias is another name of the same model with its own sampling. `sparkwright catalog show
RECIPE` prints each alias's temperature, top P, top K, presence penalty, thinking, and source;
`sparkwright endpoints` writes the alias into clients' configuration. An alias's `thinking` sets
`enable_thinking` in a request."""

_YAML = """\
Each YAML file is an entry. `kind` is the entry's type, and other entries refer to its `name`; the
file's name and folder are free. A new image tag, model or recipe needs no code. A site's own
`catalog/` needs no setting; `catalog_directories` names other directories:

    # group_data/all.py
    catalog_directories = ["my-catalog"]

Later directories override the shipped catalog by kind and name. With `extends: true` an entry
changes only its own keys: mappings are merged key by key; other values are replaced.
`extends: NAME` makes a new entry from another entry and these changes.

    # my-catalog/fewer-sequences.yaml
    kind: recipe
    name: qwen36-35b-a3b-heretic-dflash
    extends: true
    arguments: {max_num_seqs: 16}

These commands write an entry, with a comment on every key, from another recipe or a repository's
files:

    sparkwright catalog new recipe my-recipe --from gemma4-26b-a4b-dflash-agentic
    sparkwright catalog new recipe my-recipe --model organisation/name
    sparkwright check --recipe my-recipe

The first line of the file names a JSON Schema, so editors complete keys and underline
mistakes. Errors name the file and key of unknown keys, missing keys and references to missing
entries. In your own catalog `source`, `system` and `date` are optional.
[minimal.yaml](examples/minimal.yaml) has the required keys of a recipe;
[complete.yaml](examples/complete.yaml) has every key.

`sparkwright catalog schema` prints every key of a kind, with its type and meaning."""


def page(catalog: Catalog) -> str:
    """Text of the page."""
    recipes = sorted(catalog.recipes.values(), key=in_order)
    cards = ((name, of, day, f"<{at}>") for name, of, day, at in CARDS)
    tags = (_tag(image, tag) for image in catalog.images.values() for tag in image.tags)
    parts = ["# The catalog", GENERATED.format(source="the catalog"), _INTRODUCTION]
    parts += ["## Cards", _CARDS, table(("name", "subject", "read", "published at"), cards)]
    head = ("recipe", "GPU", "status", "image", "tokens/s", "published in")
    rows = (_recipe(recipe, catalog) for recipe in recipes)
    parts += ["## Recipes", _RECIPES, table(head, rows)]
    parts += ["## Aliases", _ALIASES]
    head = ("image", "tag", "date", "engine", "purpose", "roll back to")
    parts += ["## Tags", table(head, tags)]
    parts += ["## Entries of your own", _YAML, table(("kind", "entry", "required"), _kinds())]
    return "\n\n".join(parts) + "\n"


def machines(recipe: Recipe, catalog: Catalog) -> str:
    """GPUs of a recipe, and its image's architectures if they do not fit all of these GPUs."""
    families = ", ".join(family(cap) for cap in recipe.needs.compute_caps)
    images = architectures(recipe, catalog)
    if any(FAMILIES[cap].architecture not in images for cap in recipe.needs.compute_caps):
        return f"{families}, by the card; the image is only for {', '.join(images)}"
    return f"{families} only" if spark_only(recipe, catalog) else families


def _recipe(recipe: Recipe, catalog: Catalog) -> Sequence[str]:
    tag = recipe.tag or catalog.images[recipe.image].newest_tag
    ran = (f"ran on {item.gpu}, {item.date}: {item.outcome}" for item in recipe.ran)
    status = "; ".join((recipe.status, *ran))
    name, image = f"`{recipe.name}`", f"{recipe.image}:{tag}"
    return name, machines(recipe, catalog), status, image, *published(recipe, catalog)


def _tag(image: Image, name: str) -> Sequence[str]:
    tag = image.tags[name]
    architecture = ", ".join(tag.architectures)
    return (
        image.name,
        f"`{name}`",
        str(tag.date),
        tag.version or "",
        architecture,
        tag.rollback or "",
    )


def _kinds() -> Iterator[Sequence[str]]:
    for name, kind in KINDS.items():
        required = [key for key, item in kind.model_fields.items() if item.is_required()]
        summary = documented(kind.__doc__ or "")[0].partition(". ")[0]
        yield f"`{name}`", summary, ", ".join(f"`{key}`" for key in required[2:])
