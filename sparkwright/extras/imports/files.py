"""Writing what was imported into a catalog, with the original text beside it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sparkwright.catalog.load import validated
from sparkwright.extras.imports.entries import Imported
from sparkwright.findings.user_error import UserError, mistake

_FOLDERS = {"image": "images", "model": "models", "recipe": "recipes"}
_HEAD = """\
# Imported by `sparkwright import` from {source}
# What was left out is in the recipe's notes; the original text: recipes/{name}.original
"""


@dataclass(frozen=True)
class Written:
    """Files of one import: those that were written, and those that were as they had to be."""

    written: tuple[Path, ...]
    unchanged: tuple[Path, ...]


def write(imported: Imported, directory: Path, *, replace: bool) -> Written:
    """Write entries and original.

    Raises:
        UserError: for files that are there with another content, unless they are to be replaced;
            nothing is written then.
    """
    texts = {
        directory / _FOLDERS[kind] / f"{name}.yaml": _text(imported, entry)
        for (kind, name), entry in imported.entries.items()
    }
    texts[directory / "recipes" / f"{imported.name}.original"] = imported.original
    same = [path for path, text in texts.items() if _is_same(path, text)]
    others = [path for path in texts if path not in same and path.exists()]
    # A model that another recipe brought gets what this one adds.
    kept = [] if replace else [path for path in others if path.parent.name != "models"]
    if kept:
        remedy = "--replace overwrites it (what you changed in it is lost); --name NAME keeps both"
        raise UserError(mistake(str(path), "it is there already", remedy) for path in kept)
    for path, text in texts.items():
        if path not in same:
            path.parent.mkdir(parents=True, exist_ok=True)
            _put(path, text)
    return Written(tuple(path for path in texts if path not in same), tuple(same))


def _text(imported: Imported, entry: dict[str, Any]) -> str:
    head = _HEAD.format(source=_one_line(imported.source), name=imported.name)
    body = validated(entry, imported.source).model_dump(
        mode="json", exclude_unset=True, exclude_none=False
    )
    return head + yaml.safe_dump(body, sort_keys=False, width=100, allow_unicode=True)


def _is_same(path: Path, text: str) -> bool:
    """Whether a file says the same; the day and the commit of an import are no difference."""
    try:
        there = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    if path.suffix != ".yaml":
        return there == text
    try:
        return bool(_lasting(yaml.safe_load(there)) == _lasting(yaml.safe_load(text)))
    except yaml.YAMLError:
        return False


def _lasting(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: _lasting(v) for k, v in data.items() if k not in ("date", "source", "notes")}
    return [_lasting(one) for one in data] if isinstance(data, list) else data


def _put(path: Path, text: str) -> None:
    """Whole or not at all; a link at its place is replaced, not followed."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    beside.replace(path)


def _one_line(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)
