"""Registries of recipes on the command line: ``@NAME`` of the settings, or an address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sparkwright.cli.lib.options import site_inventory
from sparkwright.config.inventory import HostInput, read_inventory
from sparkwright.config.registries import named_registries
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.imports.foreign import Text
from sparkwright.imports.sources import of_files, of_path
from sparkwright.resolve.lock import read_lock
from sparkwright.resolve.recipe_registry import Snapshot, snapshot


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
    return of_files(found.files(), found.read, found.source, found.date())
