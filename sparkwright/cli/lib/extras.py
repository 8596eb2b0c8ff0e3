"""Commands and offered objects, from ``cli/commands.json`` and each extra's ``extra.json``.

An extra is a folder of sparkwright/extras/. Its file lists the extra's commands with their options.
Under ``offers``, the file lists objects that the core or another extra uses if this extra is
installed: a name, and ``module:object``.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click

_PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Command:
    """A command of the core or of an extra.

    Attributes:
        name: name such as ``bench``, or ``fabric test`` for a command that an extra adds to a
            group.
        help: the command's line in the help.
        module: a module with the click command as ``command``, or as another object after a colon;
            the module may have the type of its JSON document as ``DOCUMENT``.
        section: section in the help; empty for a command of a group.
        asks_hosts: whether the command queries hosts in its own process.
    """

    name: str
    help: str
    module: str
    section: str = ""
    asks_hosts: bool = False

    def load(self) -> click.Command:
        """Import and return the click command."""
        command: click.Command = _object(self.module)
        return command


@cache
def tables() -> dict[str, dict[str, Any]]:
    """Return the tables of the core and of every installed extra, by package."""
    files = (_PACKAGE / "cli/commands.json", *sorted(_PACKAGE.glob("extras/*/extra.json")))
    names = (".".join(file.parent.relative_to(_PACKAGE.parent).parts) for file in files)
    texts = (file.read_text(encoding="utf-8") for file in files)
    return dict(zip(names, map(json.loads, texts), strict=True))


@cache
def all_commands() -> dict[str, Command]:
    """Return every command by name, the core's commands first, without loading their modules."""
    return {
        name: Command(name, **{**entry, "module": f"{package}.{entry['module']}"})
        for package, table in tables().items()
        for name, entry in table["commands"].items()
    }


def _object(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name or "command")


def offered(name: str) -> Iterator[Any]:
    """Yield the objects that extras offer under a name."""
    for package, table in tables().items():
        if path := table.get("offers", {}).get(name):
            yield _object(f"{package}.{path}")


class ExtensibleGroup(click.Group):
    """A group of commands that extras add to, under names such as ``fabric test``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the core's and the extras' commands, sorted."""
        begin = f"{self.name} "
        added = {name.removeprefix(begin) for name in all_commands() if name.startswith(begin)}
        return sorted({*super().list_commands(ctx), *added})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name."""
        added = all_commands().get(f"{self.name} {cmd_name}")
        return super().get_command(ctx, cmd_name) or (added.load() if added else None)
