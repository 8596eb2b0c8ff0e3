"""Which format a file is of, and its recipes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkwright.catalog import Catalog
from sparkwright.catalog.load import validated
from sparkwright.extras.imports import eugr, sparkrun
from sparkwright.extras.imports.entries import Imported, make
from sparkwright.findings.finding import Finding, Severity
from sparkwright.findings.user_error import UserError
from sparkwright.recipes import vllm_recipes
from sparkwright.recipes.recipe import REFUSED, Foreign, Options, Refused, Text
from sparkwright.recipes.yaml_mapping import read_yaml


@dataclass(frozen=True)
class Format:
    """One format of recipes."""

    title: str
    is_one: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Text, dict[str, Any], Options], Iterator[Foreign | Refused]]


#: In the order in which they are tried.
FORMATS = (
    Format("vllm-project/recipes", vllm_recipes.is_one, vllm_recipes.read),
    Format("eugr/spark-vllm-docker, version 1", eugr.is_one, eugr.read),
    Format("sparkrun, version 2", sparkrun.is_one, sparkrun.read),
)


@dataclass(frozen=True)
class Result:
    """What became of one recipe: its entries, or why there are none.

    Attributes:
        source: where it is.
        format: of its file.
    """

    source: str
    format: str
    imported: Imported | None
    findings: tuple[Finding, ...]


def format_of(data: Mapping[str, Any]) -> Format | None:
    """The format of a file's keys; None for what is no recipe."""
    return next((one for one in FORMATS if one.is_one(data)), None)


def import_texts(texts: list[Text], catalog: Catalog, options: Options) -> Iterator[Result]:
    """Every recipe of every file, each with the entries of those before it in the catalog.

    A file that is no recipe at all is passed over where there are several.
    """
    # Those of the folder itself have the short names.
    for text in sorted(texts, key=lambda one: (one.name.count("/"), one.name)):
        try:
            data = read_yaml(text.text)
            found = format_of(data)
            if found is None:
                if len(texts) == 1:
                    titles = ", ".join(one.title for one in FORMATS)
                    raise Refused("", "of no format that is known", f"known: {titles}")
                continue
            recipes = list(found.read(text, data, options))
        except Refused as refused:
            yield Result(text.source, "", None, (refused.finding(text.source),))
            continue
        for one in recipes:
            result = _result(one, text, found, catalog, options)
            if result.imported:
                catalog = _with(catalog, result.imported)
            yield result


def _result(
    one: Foreign | Refused, text: Text, found: Format, catalog: Catalog, options: Options
) -> Result:
    if isinstance(one, Refused):
        return Result(text.source, found.title, None, (one.finding(text.source),))
    try:
        made = make(one, catalog, options)
        for entry in made.entries.values():
            validated(entry, one.remarks.source)
    except Refused as refused:
        said = (*one.remarks.findings, refused.finding(one.remarks.source))
        return Result(one.remarks.source, found.title, None, said)
    except UserError as error:
        return Result(one.remarks.source, found.title, None, tuple(map(_refusal, error.findings)))
    return Result(one.remarks.source, found.title, made, made.remarks)


def _refusal(problem: Finding) -> Finding:
    """What our catalog's own types do not take."""
    return Finding(
        REFUSED, Severity.ERROR, problem.subject, problem.observed,
        reason="the catalog does not take it", remedy="correct a copy, and import that",
    )  # fmt: skip


def _with(catalog: Catalog, imported: Imported) -> Catalog:
    """The catalog with the entries of an import."""
    groups: dict[str, dict[str, Any]] = {
        "image": dict(catalog.images), "model": dict(catalog.models),
        "recipe": dict(catalog.recipes),
    }  # fmt: skip
    for (kind, name), entry in imported.entries.items():
        groups[kind][name] = validated(entry, imported.source)
    update = {f"{kind}s": entries for kind, entries in groups.items()}
    return catalog.model_copy(update=update)
