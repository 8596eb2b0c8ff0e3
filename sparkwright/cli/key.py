"""``sparkwright key``: API keys listed, rotated, retired and revoked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from sparkwright.cli.lib import completion
from sparkwright.cli.lib.connecting import connection_options
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import data_option, json_option, optional_inventory, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.config.keys import DEFAULT, KeyFile, rotated
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.results.keys import render, rows
from sparkwright.site.fleet import PlannedHost

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _inventory(command: _Command) -> _Command:
    """``[INVENTORY]``, ``--data``, the connection. No ``--limit``: a key is that of every host."""
    return optional_inventory(data_option(connection_options(command)))


_name = click.option(
    "--name", default=DEFAULT, metavar="NAME", shell_complete=completion.keys,
    help="A key of `keys`; else the fleet's own.",
)  # fmt: skip


@click.group("key")
def command() -> None:
    """API keys of the fleet and its clients: list, rotate, retire, revoke."""


@command.command("list")
@_inventory
@json_option
def list_command(inventory: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """List keys by name, with their state and the hosts that know them. Never the keys."""
    hosts = load(inventory, overrides, ()).or_raise()
    from sparkwright.run import questions

    answers = Hosts(inventory, overrides).ask(questions.known_keys)
    found = rows({name: host.plan.settings for name, host in hosts.items()}, answers.answers)
    if as_json:
        print_json([row.data for row in found])
    else:
        echo(render(found))
    sys.exit(int(bool(answers.failures)))


@command.command("rotate")
@_inventory
@_name
@json_option
def rotate_command(inventory: Path, overrides: tuple[str, ...], name: str, as_json: bool) -> None:
    """Make a new key. The proxies know both, until `sparkwright key retire`.

    The new one is the current one, for clients and for `sparkwright endpoints`, once every host
    knows it. No service restarts and no request fails. A revoked key gets a new value.
    """
    hosts = load(inventory, overrides, ()).or_raise()
    files = _files(hosts, name)
    if begun := [one.old for one in files.values() if one.old.exists()]:
        command_line = f"sparkwright key retire{_option(name)} {inventory}"
        raise UserError(
            mistake(str(old), f"the former rotation of {name!r} is not ended", command_line)
            for old in begun
        )
    for one in files.values():
        one.begin()
    if missing := _apply(inventory, overrides, hosts, name):
        echo(f"{', '.join(missing)}: without the new key. The old one stays the current one; "
                   "run this again when they can be reached", err=True)  # fmt: skip
        if as_json:
            print_json({"name": name, "state": "unfinished", "missing": missing})
        sys.exit(1)
    for one in files.values():
        one.promote()
    for host, planned in hosts.items():
        for service in planned.plan.services if name == DEFAULT else ():
            if not service.proxy:
                echo(f"{host}: {service.name} has no proxy: vLLM knows one key, and takes "
                           "the new one by a restart in the next deploy", err=True)  # fmt: skip
    if as_json:
        print_json({"name": name, "state": "rotated", "missing": []})
    for path in () if as_json else files:
        echo(f"{name}: the new key is in {path}; the one before is valid until "
                   f"`sparkwright key retire{_option(name)} {inventory}`")  # fmt: skip


@command.command("retire")
@_inventory
@_name
@json_option
def retire_command(inventory: Path, overrides: tuple[str, ...], name: str, as_json: bool) -> None:
    """End the key from before a rotation: the proxies forget it, and so does the controller."""
    hosts = load(inventory, overrides, ()).or_raise()
    for one in _files(hosts, name).values():
        if one.new.exists():
            raise UserError(
                [mistake(str(one.new), f"the rotation of {name!r} has not reached every host",
                         f"sparkwright key rotate{_option(name)} {inventory}")]
            )  # fmt: skip
        one.retire()
    _end(_apply(inventory, overrides, hosts, name), name, "retired", as_json=as_json)


@command.command("revoke")
@click.argument("name", shell_complete=completion.keys)
@_inventory
@json_option
def revoke_command(name: str, inventory: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """Revoke the key of one client, at once and on every host. The others stay valid.

    `sparkwright key rotate --name NAME` gives the client a new one.
    """
    hosts = load(inventory, overrides, ()).or_raise()
    if name == DEFAULT:
        what = "the fleet's own key can't be revoked: sparkwright uses it itself"
        raise UserError([mistake(name, what, f"sparkwright key rotate {inventory}, then retire")])
    for one in _files(hosts, name).values():
        one.revoke()
    _end(_apply(inventory, overrides, hosts, name), name, "revoked", as_json=as_json)


def _files(hosts: Mapping[str, PlannedHost], name: str) -> dict[Path, KeyFile]:
    """The files of a key, by path: groups of hosts may have keys of their own."""
    settings = [one.plan.settings for one in hosts.values()]
    names = sorted({DEFAULT, *(key for one in settings for key in one.keys)})
    if name not in names:
        raise UserError([mistake(name, "no host has a key of this name", suggest(name, names))])
    found = [rotated(one, name) for one in settings if name in (DEFAULT, *one.keys)]
    return {one.path: one for one in found}


def _apply(
    inventory: Path, overrides: tuple[str, ...], hosts: Mapping[str, PlannedHost], name: str
) -> list[str]:
    """Have every proxy know the keys as they are. Returns the hosts of which that is not sure."""
    from sparkwright.run import questions

    missing = Hosts(inventory, overrides).ask(questions.renewed_keys, makes_secrets=True).failures
    return [
        host
        for host in missing
        if (plan := hosts[host].plan).settings.load_balancer
        or any(service.proxy for service in plan.services)
        if name in (DEFAULT, *plan.settings.keys)
    ]


#: What a key's state means to whoever changed it.
_DONE = {"retired": "only the current key is valid", "revoked": "revoked"}


def _end(missing: list[str], name: str, state: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "state": state, "missing": missing})
    if missing:
        echo(f"{', '.join(missing)}: may know the former keys still; run this again when "
                   "they can be reached, or deploy", err=True)  # fmt: skip
        sys.exit(1)
    if not as_json:
        echo(f"{name}: {_DONE[state]}")


def _option(name: str) -> str:
    return "" if name == DEFAULT else f" --name {name}"
