"""Options that several commands share: hosts of an inventory among them; and the question before
something is changed or gone."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import click

from sparkwright.cli.lib import completion
from sparkwright.config.inventory import HostInput, limited, read_inventory
from sparkwright.config.inventory import site_inventory as site_inventory
from sparkwright.findings.user_error import refusal
from sparkwright.text.visible import visible_json

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Selection:
    """Hosts of an inventory, as a command line names them.

    Attributes:
        overrides: ``key=value``, as pyinfra's ``--data``.
        limit: names and groups of hosts, and patterns of names; all hosts without.
    """

    inventory: Path
    overrides: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join(self.limit) or f"all hosts of {self.inventory}"

    def only(self, names: Iterable[str]) -> Self:
        """Only these of its hosts; all hosts of the inventory for no name."""
        return replace(self, limit=tuple(names))

    def read(self) -> list[HostInput]:
        """The hosts as the user's files give them. Raises UserError."""
        return limited(read_inventory(self.inventory, self.overrides), self.limit)

    @property
    def everyone(self) -> dict[str, Mapping[str, Any]]:
        """Data of every host of the inventory, by name. Raises UserError."""
        return {host.name: host.data for host in self.only(()).read()}


def _selecting(command: _Command, kind: type[Selection]) -> _Command:
    """Give a command its inventory, ``--data`` and ``--limit`` as ``hosts``."""

    @wraps(command)
    def with_hosts(
        *,
        inventory: Path,
        overrides: tuple[str, ...] = (),
        limit: tuple[str, ...] = (),
        **more: Any,
    ) -> Any:
        return command(hosts=kind(inventory, overrides, limit), **more)

    return cast("_Command", with_hosts)


def _inventory() -> Path:
    """The site's own; while a shell completes, there may be no site."""
    context = click.get_current_context(silent=True)
    if context is not None and context.resilient_parsing:
        return Path("inventory/lab.py")
    return site_inventory()


_INVENTORY = click.Path(path_type=Path, dir_okay=False)
#: Options: those that several commands share by a name, others after their command.
_OPTIONS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("options.json").read_text(encoding="utf-8")
)


def option(name: str, **more: Any) -> Callable[[_Command], _Command]:
    """Return an option of ``options.json``; its types and completions are given here."""
    settings = {**_OPTIONS[name], **more}
    return click.option(*settings.pop("names"), **settings)


data_option = option("data")
limit_option = option("limit", shell_complete=completion.hosts)
service_option = option("services", shell_complete=completion.services)
one_service_option = option("service", shell_complete=completion.services)
json_option, pyinfra_json_option = option("json"), option("pyinfra-json")
yes_option, dry_option = option("yes"), option("dry")
catalog_directories = option("directories", type=click.Path(path_type=Path, file_okay=False))


def optional_inventory(command: _Command, kind: type[Selection] = Selection) -> _Command:
    """``[INVENTORY]``, as ``hosts``: without it the site's own."""
    argument = click.argument("inventory", type=_INVENTORY, default=_inventory)
    return argument(_selecting(command, kind))


def inventory_argument(command: _Command, kind: type[Selection] = Selection) -> _Command:
    """``[INVENTORY]`` with ``--data`` and ``--limit``, as ``hosts``."""
    return optional_inventory(data_option(limit_option(command)), kind)


def inventory_and(
    complete: completion.Complete | None = None,
    kind: type[Selection] = Selection,
    **arguments: click.ParamType[Any],
) -> Callable[[_Command], _Command]:
    """``[INVENTORY]``, as ``hosts``, before words that the command gets by their names, converted
    to a type.

    Args:
        complete: completes the words.
    """
    metavar = " ".join(
        "|".join(kind.choices) if isinstance(kind, click.Choice) else name.upper()
        for name, kind in arguments.items()
    )

    def parsed(context: click.Context, argument: click.Parameter, given: tuple[str, ...]) -> None:
        first = given[: -len(arguments)]
        if len(given) < len(arguments):
            raise click.MissingParameter(f"write [INVENTORY] {metavar}", context, argument)
        if len(first) > 1:
            raise click.BadParameter(f"write [INVENTORY] {metavar}")
        for (name, kind), word in zip(arguments.items(), given[-len(arguments) :], strict=True):
            context.params[name] = kind.convert(word, argument, context)
        context.params["inventory"] = Path(*first) if first else site_inventory()

    argument = click.argument(
        "words", nargs=-1, metavar=f"[INVENTORY] {metavar}", callback=parsed, expose_value=False,
        shell_complete=complete,
    )  # fmt: skip
    return lambda command: argument(_selecting(command, kind))


def confirm(question: str, *, yes: bool, dry: bool = True) -> None:
    """Go on only when the user says so.

    Args:
        dry: whether the command has ``--dry``, and may be told of it.

    Raises:
        click.Abort: they do not.
        UserError: nobody can answer.
    """
    if yes:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        remedy = "add --yes, or --dry to only look" if dry else "add --yes"
        raise refusal("command line", f"{question} Nobody said yes", remedy) from None
    if not agreed:
        raise click.Abort


def print_json(data: Any) -> None:
    """Indented, in a stable order, with dates as text; a terminal obeys nothing of it."""
    click.echo(visible_json(json.dumps(data, indent=2, ensure_ascii=False, default=str)))
