"""Text and JSON files that may be missing, damaged, or of another version."""

import json
from pathlib import Path

from sparkwright.host.lib.annotations import Any, T
from sparkwright.host.lib.records import decode


def text(path: Path | str) -> str | None:
    """Return a file's text; None if it can't be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def read(path: Path | str) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if the file is missing or holds no object."""
    return parsed(text(path))


def record(cls: type[T], path: Path | str) -> T | None:
    """Return the record in a JSON file; None if the file is missing or does not fit the record."""
    return decoded(cls, text(path))


def decoded(cls: type[T], document: str | None) -> T | None:
    """Return a record from JSON text; None if the text does not fit the record."""
    try:
        return None if document is None else decode(cls, json.loads(document))
    except (ValueError, RecursionError):
        return None


def lines(path: Path | str) -> list[dict[str, Any]]:
    """Return the JSON objects of a file with one object a line; incomplete lines are skipped."""
    return objects(text(path) or "")


def objects(content: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a text, one a line; all other lines are skipped."""
    documents = map(parsed, content.splitlines())
    return [document for document in documents if document is not None]


def pairs(output: str) -> dict[str, str]:
    """Parse ``Key=value`` lines."""
    return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)


def digest(path: Path | str) -> str | None:
    """Return the sha256 of a file; None if the file is missing."""
    import hashlib  # hashlib takes 5 ms to import: only for callers that hash

    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


def parsed(content: str | bytes | None) -> dict[str, Any] | None:
    """Return the JSON object in a text; None if the text holds no object."""
    try:
        document = json.loads(content or "")
    except ValueError:
        return None
    return document if isinstance(document, dict) else None
