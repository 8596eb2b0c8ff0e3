"""Results as files: ``<directory>/<host>/<service>/<UTC time>.json``, one per run.

Or all of a selection as one file to hand on: ``{"schema": 1, "results": [...]}``. Reading never
fails as a whole: a file or entry that can't be read is reported by name, the others count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from sparkwright.extras.bench.results import SCHEMA, Result
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.findings.validation import problems_of

#: Sorts by name as it does by time, and needs no quoting in a shell.
_NAME = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class Stored:
    """What a directory holds.

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
        UserError: when the service has a result of the same second, or the disk refuses.
    """
    path = path_of(directory, result)
    if path.exists():
        raise UserError(
            [mistake(str(path), "there is a result of this second already", "keep one of the two")]
        )
    _write(path, result.model_dump_json(by_alias=True, indent=1))
    return path


def export(path: Path, results: Iterable[Result]) -> int:
    """Write results as one file; returns how many.

    Raises:
        UserError: when the disk refuses.
    """
    entries = [result.model_dump(mode="json", by_alias=True) for result in results]
    _write(path, json.dumps({"schema": SCHEMA, "results": entries}, indent=1))
    return len(entries)


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(f"{text}\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise UserError(
            [mistake(str(path), f"can't be written: {error.strerror}", "fix its rights")]
        ) from error


def load(directory: Path, *, last: int | None = None) -> Stored:
    """Read what a directory, or an exported file, holds; one that is not there holds nothing.

    Args:
        last: only so many of each service, the newest: a page needs no more, however long a
            fleet has been measured. None for all.
    """
    if directory.is_file():
        return _load_exported(directory, last)
    services: dict[tuple[str, str], tuple[Result, ...]] = {}
    problems: list[Finding] = []
    for folder in sorted(_folders(directory)):
        # The names sort by time. Broken files count too, so that each is reported.
        files = sorted(folder.glob("*.json"))[-last if last else None :]
        results = [result for path in files if (result := _read(path, problems)) is not None]
        if results:
            key = folder.parent.name, folder.name
            services[key] = tuple(sorted(results, key=lambda result: result.when))
    return Stored(services, tuple(problems))


def _load_exported(path: Path, last: int | None) -> Stored:
    problems: list[Finding] = []
    found: dict[tuple[str, str], list[Result]] = {}
    for number, entry in enumerate(_entries(path, problems)):
        try:
            result = Result.model_validate(entry)
        except ValidationError as error:
            problems.extend(_problems(error, f"{path}: results.{number}"))
        else:
            found.setdefault((result.host, result.service), []).append(result)
    return Stored(
        {
            key: tuple(sorted(results, key=lambda result: result.when))[-last if last else None :]
            for key, results in sorted(found.items())
        },
        tuple(problems),
    )


def _entries(path: Path, problems: list[Finding]) -> list[Any]:
    """The entries of an exported file."""
    try:
        data = from_json(path.read_bytes(), allow_inf_nan=False)
    except OSError as error:
        problems.append(mistake(str(path), f"can't be read: {error.strerror}", "fix its rights"))
        return []
    except ValueError as error:
        problems.append(mistake(str(path), f"not valid JSON: {error}", "export it again"))
        return []
    entries = data.get("results") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        problems.append(
            mistake(str(path), "not a file of results", "make one: sparkwright bench --export")
        )
        return []
    return entries


def _folders(directory: Path) -> Iterator[Path]:
    if directory.is_dir():
        for host in directory.iterdir():
            if host.is_dir():
                yield from (service for service in host.iterdir() if service.is_dir())


def _read(path: Path, problems: list[Finding]) -> Result | None:
    try:
        result = Result.model_validate_json(path.read_bytes())
    except OSError as error:
        problems.append(mistake(str(path), f"can't be read: {error.strerror}", "fix its rights"))
        return None
    except ValidationError as error:
        problems.extend(_problems(error, str(path)))
        return None
    named = path.parent.parent.name, path.parent.name
    if (result.host, result.service) != named:
        problems.append(
            mistake(
                str(path),
                f"it is a result of {result.host}/{result.service}, not of {'/'.join(named)}",
                "move it where it belongs: another host's figures would count as this one's past",
            )
        )
        return None
    return result


def _problems(error: ValidationError, path: str) -> Iterator[Finding]:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        yield mistake(
            path, "not valid JSON, or only the beginning of it", "measure again, or remove it"
        )
    elif first["loc"] == ("schema",):
        yield mistake(
            f"{path}: schema",
            f"{first['input']!r}: this version reads results up to schema {SCHEMA}",
            "update sparkwright",
        )
    else:
        yield from problems_of(error, path)
