"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sparkwright.cli.lib.completion import hosts
from sparkwright.config.inventory import site_inventory as site_inventory
from sparkwright.text.visible import visible_json

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _inventory() -> Path:
    """The site's own; while a shell completes, there may be no site."""
    context = click.get_current_context(silent=True)
    if context is not None and context.resilient_parsing:
        return Path("inventory/lab.py")
    return site_inventory()


_INVENTORY = click.Path(path_type=Path, dir_okay=False)
#: ``[INVENTORY]``: without it the site's own.
optional_inventory = click.argument("inventory", type=_INVENTORY, default=_inventory)
#: ``--data`` and ``--limit``, as pyinfra has them.
data_option = click.option(
    "--data", "overrides", multiple=True, metavar="KEY=VALUE",
    help="A setting over every file, as pyinfra's --data (repeatable).",
)  # fmt: skip
limit_option = click.option(
    "--limit", multiple=True, metavar="HOST", shell_complete=hosts,
    help="Only this host, group or pattern such as 'spark-*' (repeatable).",
)  # fmt: skip


def inventory_argument(command: _Command) -> _Command:
    """``[INVENTORY]`` with ``--data`` and ``--limit``."""
    for decorate in (limit_option, data_option, optional_inventory):
        command = decorate(command)
    return command


def inventory_and_directory(command: _Command) -> _Command:
    """``[INVENTORY] DIRECTORY``: of one word it is the directory."""
    inventory = click.argument(
        "inventory", type=click.Path(path_type=Path), required=False, metavar="[INVENTORY]"
    )
    directory = click.argument(
        "directory", type=click.Path(path_type=Path, file_okay=False), required=False,
        metavar="DIRECTORY", callback=_directory,
    )  # fmt: skip
    return inventory(directory(command))


def _directory(context: click.Context, argument: click.Parameter, value: Path | None) -> Any:
    if value is not None:
        return value
    only = context.params["inventory"]
    if only is None:
        raise click.MissingParameter(ctx=context, param=argument)
    context.params["inventory"] = site_inventory()
    return argument.type.convert(only, argument, context)


def json_option(command: _Command) -> _Command:
    """``--json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON instead of text (docs/json.md)."
    )(command)


def print_json(data: Any) -> None:
    """Indented, in a stable order, with dates as text; a terminal obeys nothing of it."""
    click.echo(visible_json(json.dumps(data, indent=2, ensure_ascii=False, default=str)))


catalog_directories = click.option(
    "--directory",
    "directories",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Read a catalog of your own over the shipped one (repeatable).",
)
