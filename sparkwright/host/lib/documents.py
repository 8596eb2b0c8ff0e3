"""Files of text and JSON that may be missing, half written, or of another version."""

from __future__ import annotations

import json
from pathlib import Path

from sparkwright.host.lib.annotations import Any, T
from sparkwright.host.lib.records import decode


def text(path: Path | str) -> str | None:
    """A file's text; None when it can't be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def read(path: Path | str) -> dict[str, Any] | None:
    """A file that holds a JSON object; None when it is not there or holds none."""
    return parsed(text(path))


def record(cls: type[T], path: Path | str) -> T | None:
    """The same as a record; None also when it does not make one."""
    return decoded(cls, text(path))


def decoded(cls: type[T], document: str | None) -> T | None:
    """A record from JSON text; None when it does not make one."""
    try:
        return None if document is None else decode(cls, json.loads(document))
    except (ValueError, RecursionError):
        return None


def lines(path: Path | str) -> list[dict[str, Any]]:
    """A file with a JSON object a line; lines that a power cut tore are passed over."""
    return objects(text(path) or "")


def objects(content: str) -> list[dict[str, Any]]:
    """JSON objects of a text, one a line; every other line is passed over."""
    documents = map(parsed, content.splitlines())
    return [document for document in documents if document is not None]


def pairs(output: str) -> dict[str, str]:
    """``Key=value`` lines."""
    return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)


def digest(path: Path | str) -> str | None:
    """sha256 of a file; None when it is not there."""
    import hashlib  # 5 ms, for those alone who need it

    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


def parsed(content: str | bytes | None) -> dict[str, Any] | None:
    """A JSON object from its text; None when it is none."""
    try:
        document = json.loads(content or "")
    except ValueError:
        return None
    return document if isinstance(document, dict) else None
