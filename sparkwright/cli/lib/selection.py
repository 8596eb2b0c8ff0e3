"""The argument with which every command selects hosts and services, and its options."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce, wraps
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import click

from sparkwright.cli.lib import completion, output
from sparkwright.cli.lib.options import option
from sparkwright.config.inventory import HostInput, limited, read_inventory, site_inventory
from sparkwright.config.targets import targets_of
from sparkwright.findings.user_error import UserError

_Command = TypeVar("_Command", bound=Callable[..., Any])
data_option = option("data")
_limit = option("limit", shell_complete=completion.hosts)
_host = option("host", shell_complete=completion.hosts)
_service = option("services", shell_complete=completion.services)


@dataclass(frozen=True)
class Selection:
    """Hosts and services of an inventory that a command line selects.

    Attributes:
        file: the inventory on the command line; None for the site's own inventory.
        overrides: ``key=value`` texts, as for pyinfra's ``--data``.
        limit: names and groups of hosts, and patterns of names; empty for all hosts.
        services: names of services selected on every host; empty for all services.
        of_hosts: host -> names of further services selected on the host.
    """

    file: Path | None = None
    overrides: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    of_hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(self.limit) or f"all hosts of {self.inventory}"

    @property
    def inventory(self) -> Path:
        """The inventory's file. Raises UserError if the inventory is ambiguous."""
        return self.file or site_inventory()

    @property
    def named_services(self) -> tuple[str, ...]:
        """Every service that the command line names."""
        of_hosts = (name for names in self.of_hosts.values() for name in names)
        return tuple(dict.fromkeys((*self.services, *of_hosts)))

    def services_of(self, host: str) -> tuple[str, ...] | None:
        """The selected services of a host; None for all services."""
        return (*self.services, *self.of_hosts.get(host, ())) or None

    def means(self, host: str, service: str) -> bool:
        """Return whether the selection includes a service of a host."""
        return service in (self.services_of(host) or (service,))

    def subject(self, everything: str = "every service", link: str = "on") -> str:
        """Return the services and their hosts as a text for a confirmation."""
        hosts: dict[str, list[str]] = {}
        for host in self.limit or (str(self),):
            hosts.setdefault(", ".join(self.services_of(host) or (everything,)), []).append(host)
        return ", ".join(f"{names} {link} {', '.join(on)}" for names, on in hosts.items())

    def only(self, names: Iterable[str]) -> Self:
        """Return a selection of the named hosts; of all hosts if no host is named."""
        return replace(self, limit=tuple(names))

    def read(self) -> list[HostInput]:
        """Read the selected hosts from the user's files. Raises UserError."""
        return limited(read_inventory(self.inventory, self.overrides), self.limit)

    @property
    def everyone(self) -> dict[str, Mapping[str, Any]]:
        """Data of every host of the inventory, by name. Raises UserError."""
        return {host.name: host.data for host in self.only(()).read()}

    def naming(self, names: Sequence[str], *, services: bool) -> Self:
        """Resolve names of hosts and services; ``--limit`` restricts the hosts.

        Raises:
            UserError: names are unknown; the message lists them, before any connection.
        """
        hosts, planned = _inputs(self.inventory, self.overrides)
        if not hosts:  # only pyinfra can run this inventory
            return replace(self, limit=(*self.limit, *names))
        hosts = limited(hosts, self.limit)
        meant = targets_of(names, hosts, services=services, planned=planned)
        limit = meant.limit
        if self.limit:  # names select hosts within the limit
            limit = tuple(host.name for host in limited(hosts, meant.limit))
        return replace(self, limit=limit, of_hosts=meant.services)


def selection(
    kind: type[Selection], arguments: Sequence[str], *, whole: bool, **options: Any
) -> Selection:
    """Select hosts and services of a command line; an argument that ends in .py is the inventory.

    Args:
        whole: whether names may select only whole hosts.
        options: other attributes of the selection.

    Raises:
        UserError: names are unknown; the message lists them.
    """
    files = [word for word in arguments if word.endswith(".py")]
    if len(files) > 1:
        raise click.UsageError(f"name one inventory, not {' and '.join(files)}")
    chosen = kind(Path(*files) if files else None, **options)
    names = [word for word in arguments if word not in files]
    return chosen.naming(names, services=not whole) if names else chosen


def names_argument(
    kind: type[Selection] = Selection, *, services: bool = False
) -> Callable[[_Command], _Command]:
    """Add ``[NAME]...`` with ``--data`` and ``--limit``, as parameter ``hosts``.

    Args:
        services: whether names, and ``--service``, may select services.
    """

    def decorated(command: _Command) -> _Command:
        @wraps(command)
        def with_hosts(
            *, names: tuple[str, ...], limit: tuple[str, ...], host: tuple[str, ...], **more: Any
        ) -> Any:
            attributes = {key: more.pop(key) for key in ("overrides", "services") if key in more}
            limit += host
            return command(
                hosts=selection(kind, names, whole=not services, limit=limit, **attributes), **more
            )

        metavar = "[HOST|HOST/SERVICE|GROUP|SERVICE]..." if services else "[HOST|GROUP]..."
        argument = click.argument(
            "names", nargs=-1, metavar=metavar,
            shell_complete=completion.targets if services else completion.hosts,
        )  # fmt: skip
        options = (argument, data_option, _limit, _host, *([_service] if services else []))
        return cast(
            "_Command", reduce(lambda inner, add: add(inner), reversed(options), with_hosts)
        )

    return decorated


def inventory_argument(kind: type[Selection] = Selection) -> Callable[[_Command], _Command]:
    """Add ``[INVENTORY]`` with ``--data``, as parameter ``hosts``, for a command for all hosts."""

    def decorated(command: _Command) -> _Command:
        @wraps(command)
        def with_hosts(*, inventory: Path | None, overrides: tuple[str, ...], **more: Any) -> Any:
            return command(hosts=kind(inventory, overrides), **more)

        path = click.Path(path_type=Path, dir_okay=False)
        argument = click.argument("inventory", type=path, required=False)
        return cast("_Command", argument(data_option(with_hosts)))

    return decorated


def only_host(hosts: Selection) -> str:
    """Return the name of the selected host. Raises UserError for no host or several hosts."""
    names = [host.name for host in hosts.read()]
    if not hosts.limit or len(names) != 1:
        where, shown = "command line: HOST", ", ".join(names) if hosts.limit else "no host"
        raise output.MESSAGES.refusal("several-hosts", where, hosts=shown)
    return names[0]


def _inputs(inventory: Path, overrides: Iterable[str]) -> tuple[list[HostInput], bool]:
    """Return an inventory's hosts, and whether its group_data could be read."""
    try:
        return read_inventory(inventory, overrides), True
    except UserError:
        return read_inventory(inventory, for_pyinfra=True, group_data=False), False
