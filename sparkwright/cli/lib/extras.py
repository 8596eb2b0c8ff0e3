"""Extras: folders of sparkwright/extras/, each with commands of its own, found by listing them."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click

#: Sections of the help.
SITE, HOSTS, CLIENTS = "A site and its plan", "Hosts", "Clients and monitoring"
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


@dataclass(frozen=True)
class Extra:
    """What a folder of extras/ brings, as ``EXTRA`` of its package.

    Attributes:
        commands: commands of the command line.
        offers: what the core or another extra may use where it is there: name -> ``module:object``.
    """

    commands: tuple[ExtraCommand, ...] = ()
    offers: Mapping[str, str] = field(default_factory=dict)


@cache
def extras() -> tuple[Extra, ...]:
    """Every extra that is installed, in the order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(_FOLDER)]))
    return tuple(import_module(f"sparkwright.extras.{name}").EXTRA for name in names)


def extra_commands() -> dict[str, ExtraCommand]:
    """Every command of an extra, by its words."""
    return {command.words: command for extra in extras() for command in extra.commands}


def offered(name: str) -> Iterator[Any]:
    """The objects that extras offer under a name."""
    for extra in extras():
        if name in extra.offers:
            module, _, attribute = extra.offers[name].partition(":")
            yield getattr(import_module(module), attribute)


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
            words.removeprefix(begin): command
            for words, command in extra_commands().items()
            if words.startswith(begin)
        }
