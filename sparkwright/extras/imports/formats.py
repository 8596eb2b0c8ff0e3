"""Recipes of every known format, read and made into entries of the catalog."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sparkwright.catalog import Catalog, reader
from sparkwright.extras.imports import sparkrun
from sparkwright.extras.imports.entries import Imported, make
from sparkwright.findings.user_error import UserError
from sparkwright.recipes import vllm_recipes, yaml_mapping
from sparkwright.recipes.recipe import REFUSED, Foreign, Options, Text, Unfit

#: Title -> function that recognizes the format by a file's keys, and reader of the format; the
#: formats are tried in this order.
FORMATS = {
    "vllm-project/recipes": (vllm_recipes.is_one, vllm_recipes.read),
    "eugr/spark-vllm-docker, version 1": (sparkrun.is_version_1, sparkrun.read_version_1),
    "sparkrun, version 2": (sparkrun.is_one, sparkrun.read),
}


def import_texts(texts: list[Text], catalog: Catalog, options: Options) -> Iterator[Imported]:
    """Import every recipe of every file, each with the catalog entries of earlier files.

    Among several files, a file that is not a recipe is skipped.
    """
    # Recipes of the folder itself have the short names.
    for text in sorted(texts, key=lambda text: (text.name.count("/"), text.name)):
        try:
            data = yaml_mapping.read_yaml(text.text)
            title = next((title for title, (is_one, _) in FORMATS.items() if is_one(data)), None)
            if title is None:
                if len(texts) == 1:
                    raise Unfit("", "unknown format", f"known formats: {', '.join(FORMATS)}")
                continue
            recipes = list(FORMATS[title][1](text, data, options))
        except Unfit as refused:
            yield Imported(text.source, "", (refused.finding(text.source),))
            continue
        for recipe in recipes:
            imported = _imported(recipe, text, title, catalog, options)
            catalog = _with(catalog, imported)
            yield imported


def _imported(
    recipe: Foreign | Unfit, text: Text, title: str, catalog: Catalog, options: Options
) -> Imported:
    if isinstance(recipe, Unfit):
        return Imported(text.source, title, (recipe.finding(text.source),))
    remarks = recipe.remarks
    try:
        imported = make(recipe, title, catalog, options)
        for entry in imported.entries.values():
            reader.validated(entry, remarks.source)
        return imported
    except Unfit as refused:
        findings = (*remarks.findings, refused.finding(remarks.source))
        return Imported(remarks.source, title, findings)
    except UserError as error:
        reason, remedy = "the catalog refuses the recipe", "correct a copy, and import the copy"
        findings = tuple(
            replace(problem, id=REFUSED, reason=reason, remedy=remedy) for problem in error.findings
        )
        return Imported(remarks.source, title, findings)


def _with(catalog: Catalog, imported: Imported) -> Catalog:
    """The catalog with the entries of an import."""
    groups: Any = {f"{kind}s": dict(catalog.of_kind(kind)) for kind, _ in imported.entries}
    catalog = replace(catalog, **groups)
    for (kind, name), entry in imported.entries.items():
        catalog.of_kind(kind)[name] = reader.validated(entry, imported.source)
    return catalog
