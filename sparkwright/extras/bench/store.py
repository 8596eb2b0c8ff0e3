"""Results as files: ``<directory>/<host>/<service>/<UTC time>.json``, one per run.

Or all of a selection as one file to hand on: ``{"schema": 1, "results": [...]}``. Reading never
fails as a whole: a file or entry that can't be read is reported by name, the others count.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sparkwright.documents.bounds import Unusable
from sparkwright.documents.json_text import generated_object
from sparkwright.extras.bench.results import SCHEMA, Result
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake, refusal
from sparkwright.findings.validation import problems_of

#: Sorts by name as it does by time, and needs no quoting in a shell.
_NAME = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class Stored:
    """Contents of a directory, or of an exported file.

    Attributes:
        services: (host, service) -> results, the oldest first.
        problems: files that could not be read, one or more problems each.
    """

    services: dict[tuple[str, str], tuple[Result, ...]]
    problems: tuple[Finding, ...]


def path_of(directory: Path, result: Result) -> Path:
    """Where a result is kept."""
    name = f"{result.when.strftime(_NAME)}.json"
    return directory / result.host / result.service / name


def save(directory: Path, result: Result) -> Path:
    """Keep a result under its own name; a half-written file never has one.

    Raises:
        UserError: when the service has a result of the same second.
    """
    path = path_of(directory, result)
    if path.exists():
        observed = "there is a result of this second already"
        raise refusal(str(path), observed, "keep one of the two")
    _write(path, result.model_dump_json(by_alias=True, indent=1))
    return path


def export(path: Path, results: Iterable[Result]) -> int:
    """Write results as one file; returns how many."""
    entries = [result.model_dump(mode="json", by_alias=True) for result in results]
    _write(path, json.dumps({"schema": SCHEMA, "results": entries}, indent=1))
    return len(entries)


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft.write_text(f"{text}\n", encoding="utf-8")
    draft.replace(path)


def load(directory: Path, *, last: int | None = None) -> Stored:
    """Read what a directory, or an exported file, holds; one that is not there holds nothing.

    Args:
        last: only so many of each service, the newest: a page needs no more, however long a
            fleet has been measured. None for all.
    """
    problems: list[Finding] = []
    if directory.is_file():
        entries = enumerate(_entries(directory, problems))
        read = [_valid(f"{directory}: results.{n}", entry, problems) for n, entry in entries]
    else:
        folders = sorted(directory.glob("*/*"))
        # The names sort by time. Broken files count too, so that each is reported.
        newest = (sorted(folder.glob("*.json"))[-last if last else None :] for folder in folders)
        read = [_of_file(path, problems) for paths in newest for path in paths]
    services: dict[tuple[str, str], list[Result]] = {}
    for result in sorted(filter(None, read), key=lambda item: (item.host, item.service, item.when)):
        services.setdefault((result.host, result.service), []).append(result)
    kept = {key: tuple(runs[-last if last else None :]) for key, runs in services.items()}
    return Stored(kept, tuple(problems))


def _entries(path: Path, problems: list[Finding]) -> list[Any]:
    """The entries of an exported file."""
    remedy = "make one: sparkwright bench --export"
    try:
        entries = generated_object(path, remedy).get("results")
        if not isinstance(entries, list):
            raise Unusable("not a file of results", remedy)
    except Unusable as error:
        problems.append(mistake(str(path), error.what, error.remedy))
        return []
    return entries


def _of_file(path: Path, problems: list[Finding]) -> Result | None:
    try:
        result = _valid(str(path), path.read_bytes(), problems)
    except OSError as error:
        problems.append(mistake(str(path), f"can't be read: {error.strerror}", "fix its rights"))
        return None
    service, host = (folder.name for folder in path.parents[:2])
    if result is None or (result.host, result.service) == (host, service):
        return result
    observed = f"it is a result of {result.host}/{result.service}, not of {host}/{service}"
    remedy = "move it where it belongs: another host's figures would count as this one's past"
    problems.append(mistake(str(path), observed, remedy))
    return None


def _valid(path: str, data: Any, problems: list[Finding]) -> Result | None:
    """The result of a text or of an entry."""
    try:
        if isinstance(data, bytes):
            return Result.model_validate_json(data)
        return Result.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            observed, remedy = (
                "not valid JSON, or only the beginning of it",
                "measure again, or remove it",
            )
            problems.append(mistake(path, observed, remedy))
        elif first["loc"] == ("schema",):
            observed = f"{first['input']!r}: this version reads results up to schema {SCHEMA}"
            problems.append(mistake(f"{path}: schema", observed, "update sparkwright"))
        else:
            problems += problems_of(error, path)
        return None
