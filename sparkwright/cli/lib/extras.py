"""Extras: folders of sparkwright/extras/, each with an ``extra.json``, found by listing them.

The file has the extra's commands, and under ``offers`` what the core or another extra may use where
the extra is there: a name, and ``module:object``.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click

#: The section of the help with the commands that ask hosts.
HOSTS = "Hosts"
_FOLDER = Path(__file__).parents[2] / "extras"


@dataclass(frozen=True)
class ExtraCommand:
    """A command that an extra brings.

    Attributes:
        words: such as ``bench``, or ``fabric test`` for a command of a group.
        help: its line in the help.
        module: it has the click command as ``command``, and the type of its JSON document as
            ``DOCUMENT``.
        section: of the help; empty for a command of a group.
        asks_hosts: whether it asks hosts in its own process.
    """

    words: str
    help: str
    module: str
    section: str = ""
    asks_hosts: bool = False

    def load(self) -> click.Command:
        """The click command."""
        command: click.Command = import_module(self.module).command
        return command


@cache
def _extras() -> dict[str, dict[str, Any]]:
    """The ``extra.json`` of every extra that is installed, by the extra's package."""
    return {
        f"sparkwright.extras.{file.parent.name}": json.loads(file.read_text(encoding="utf-8"))
        for file in sorted(_FOLDER.glob("*/extra.json"))
    }


@cache
def extra_commands() -> dict[str, ExtraCommand]:
    """Every command of an extra, by its words."""
    return {
        arguments: ExtraCommand(arguments, **entry | {"module": f"{package}.{entry['module']}"})
        for package, extra in _extras().items()
        for arguments, entry in extra["commands"].items()
    }


def offered(name: str) -> Iterator[Any]:
    """The objects that extras offer under a name."""
    for package, extra in _extras().items():
        if place := extra.get("offers", {}).get(name):
            module, _, attribute = place.partition(":")
            yield getattr(import_module(f"{package}.{module}"), attribute)


class ExtensibleGroup(click.Group):
    """A group of commands that extras add to, under words such as ``fabric test``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Its own commands and those of extras, sorted."""
        return sorted({*super().list_commands(ctx), *self._added()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        if command := super().get_command(ctx, cmd_name):
            return command
        added = self._added().get(cmd_name)
        return added.load() if added else None

    def _added(self) -> dict[str, ExtraCommand]:
        begin = f"{self.name} "
        return {
            arguments.removeprefix(begin): command
            for arguments, command in extra_commands().items()
            if arguments.startswith(begin)
        }
