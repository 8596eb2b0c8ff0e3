"""Writing what was imported into a catalog, with the original text beside it."""

from pathlib import Path
from typing import Any

import yaml

from sparkwright.catalog.reader import validated
from sparkwright.documents import text_files as documents
from sparkwright.extras.imports.entries import Imported
from sparkwright.findings.user_error import Problems, mistake

_HEAD = """\
# Imported by `sparkwright import` from {source}
# What was left out is in the recipe's notes; the original text: recipes/{name}.original
"""


def write(imported: Imported, directory: Path, *, replace: bool) -> dict[Path, bool]:
    """Write entries and original. Returns each file, and whether it had to be written.

    Raises:
        UserError: for files that are there with another content, unless they are to be replaced;
            nothing is written then.
    """
    texts = {
        directory / f"{kind}s" / f"{name}.yaml": _text(imported, entry)
        for (kind, name), entry in imported.entries.items()
    }
    texts |= {directory / "recipes" / path: text for path, text in imported.sources.items()}
    changed = {path: not _is_same(path, text) for path, text in texts.items()}
    # A model that another recipe brought gets what this one adds.
    kept = [path for path in texts
            if changed[path] and path.exists() and path.parent.name != "models"]  # fmt: skip
    remedy = "--replace overwrites it (what you changed in it is lost); --name NAME keeps both"
    if not replace:
        Problems(mistake(str(path), "it is there already", remedy) for path in kept).stop()
    for path, text in texts.items():
        if changed[path]:
            documents.write(path, text)
    return changed


def _text(imported: Imported, entry: dict[str, Any]) -> str:
    source = "".join(each if each.isprintable() else "?" for each in imported.source)
    body = validated(entry, imported.source).model_dump(
        mode="json", exclude_unset=True, exclude_none=False
    )
    data = yaml.safe_dump(body, sort_keys=False, width=100, allow_unicode=True)
    return _HEAD.format(source=source, name=imported.name) + data


def _is_same(path: Path, text: str) -> bool:
    """Whether a file says the same; the day and the commit of an import are no difference."""
    try:
        there = path.read_text(encoding="utf-8")
        if path.suffix != ".yaml":
            return there == text
        return bool(_lasting(yaml.safe_load(there)) == _lasting(yaml.safe_load(text)))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return False


def _lasting(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: _lasting(v) for k, v in data.items() if k not in ("date", "source", "notes")}
    return [_lasting(item) for item in data] if isinstance(data, list) else data
