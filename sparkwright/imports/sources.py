"""Where recipes come from: a file, or the files below a folder."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.imports.foreign import Text
from sparkwright.imports.text import MOST_BYTES

#: Files of a folder that are looked at.
MOST_FILES = 2000
_SUFFIXES = (".yaml", ".yml")


def of_path(path: Path) -> list[Text]:
    """The recipe of a file, or every YAML file below a folder. Links below it are not followed.

    Raises:
        UserError: for what is not there, can't be read, or has no end.
    """
    if path.is_file():
        return [_read(path, path.stem, str(path))]
    if not path.is_dir():
        remedy = "name a file, a folder, https://HOST/REPOSITORY, or @NAME of `registries`"
        raise UserError([mistake(str(path), "there is no such file or folder", remedy)])
    found: list[Text] = []
    for folder, folders, files in os.walk(path, followlinks=False):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for name in sorted(files):
            file = Path(folder) / name
            if file.suffix not in _SUFFIXES or file.is_symlink() or not file.is_file():
                continue
            if len(found) == MOST_FILES:
                raise UserError([mistake(str(path), f"more than {MOST_FILES} files", "name one")])
            relative = file.relative_to(path)
            found.append(_read(file, relative.with_suffix("").as_posix(), str(file)))
    return found


def of_files(
    paths: Iterable[str], read: Callable[[str], str], source: str, date: dt.date
) -> list[Text]:
    """The YAML files of a repository's tree.

    Args:
        read: a path's content.
        source: ``repository@commit``.
        date: of the commit.
    """
    return [
        Text(str(PurePosixPath(path).with_suffix("")), read(path), f"{source}:{path}", date)
        for path in paths
        if PurePosixPath(path).suffix in _SUFFIXES
        and not any(part.startswith(".") for part in PurePosixPath(path).parts)
    ]


def chosen(texts: list[Text], names: Sequence[str]) -> list[Text]:
    """The recipes of these names: a file's own, or its path's end; all of them without a name.

    Raises:
        UserError: for each that there is none of.
    """
    if not names:
        return texts
    found: dict[str, Text] = {}
    problems = []
    for name in names:
        wanted = name.removesuffix(".yaml").removesuffix(".yml").strip("/")
        those = [one for one in texts if one.name == wanted or one.name.endswith(f"/{wanted}")]
        if not those:
            near = suggest(wanted, [one.names[0] for one in texts])
            problems.append(mistake(name, "there is no such recipe", near[:300]))
        found |= {one.source: one for one in those}
    if problems:
        raise UserError(problems)
    return list(found.values())


def _read(path: Path, name: str, source: str) -> Text:
    """The beginning of a file alone: what is longer is refused when it is read."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
            date = dt.date.fromtimestamp(os.fstat(file.fileno()).st_mtime)
        return Text(name, content.decode("utf-8", "replace"), source, date)
    except OSError as error:
        raise UserError([mistake(str(path), f"can't be read: {error}", "name another")]) from None
