"""Sources of recipes: a file, a folder, a repository, or ``@NAME`` of the setting `registries`."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparkwright.cli.lib.options import site_inventory
from sparkwright.config.inventory import HostInput, read_inventory
from sparkwright.config.registries import named_registries
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.recipes.recipe import SUFFIXES, Text, texts_of_tree
from sparkwright.recipes.yaml_mapping import MOST_BYTES
from sparkwright.resolve.lock import read_lock
from sparkwright.resolve.recipe_registry import Snapshot, snapshot

#: Files of a folder that are looked at.
MOST_FILES = 2000


def texts_of(source: str, inventory: Path | None) -> list[Text]:
    """The recipes of a source: file, folder, address, or ``@NAME[/RECIPE]``.

    Raises:
        UserError: for what is not there.
    """
    if source.startswith("@"):
        name = source[1:].partition("/")[0]
        hosts = read_inventory(inventory or site_inventory())
        known = named_registries(hosts)
        if name not in known:
            remedy = suggest(name, list(known)) if known else (
                f'set registries = {{"{name}": "https://…"}} in group_data/all.py'
            )  # fmt: skip
            raise UserError([mistake(source, f"there is no registry {name!r}", remedy)])
        return of_snapshot(snapshot(known[name], pinned(hosts, known[name])))
    if "://" in source or "::" in source:
        return of_snapshot(snapshot(source))
    path = Path(source)
    if (path / "HEAD").is_file() and (path / "objects").is_dir():  # a bare repository
        return of_snapshot(snapshot(str(path.resolve())))
    return of_path(path)


def registries_of(inventory: Path | None) -> Iterator[tuple[str, list[Text]]]:
    """Each registry of the site with its recipes; none where there is no site.

    Raises:
        UserError: for an inventory that was named and can't be read, and for a registry that can't
            be had.
    """
    if inventory is None:
        try:
            inventory = site_inventory()
        except UserError:
            return
    hosts = read_inventory(inventory)
    for name, address in named_registries(hosts).items():
        yield name, of_snapshot(snapshot(address, pinned(hosts, address)))


def pinned(hosts: list[HostInput], address: str) -> str | None:
    """The commit that the site's lock pins a registry to."""
    for file in sorted({str(host.data.get("lock_file") or "fleet.lock") for host in hosts}):
        lock = read_lock(Path(file))
        if lock and lock.registries and address in lock.registries:
            return lock.registries[address]
    return None


def of_snapshot(found: Snapshot) -> list[Text]:
    """Its recipes."""
    return texts_of_tree(found.files(), found.read, found.source, found.date())


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
            if file.suffix not in SUFFIXES or file.is_symlink() or not file.is_file():
                continue
            if len(found) == MOST_FILES:
                raise UserError([mistake(str(path), f"more than {MOST_FILES} files", "name one")])
            relative = file.relative_to(path)
            found.append(_read(file, relative.with_suffix("").as_posix(), str(file)))
    return found


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
