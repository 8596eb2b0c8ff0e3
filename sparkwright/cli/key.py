"""``sparkwright key``: list, rotate, retire and revoke API keys."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import click

from sparkwright.cli.lib import completion, selection
from sparkwright.cli.lib.hosts import Hosts, connection_options
from sparkwright.cli.lib.options import json_option, option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.config.keys import DEFAULT, KeyFile, rotated
from sparkwright.findings.user_error import UserError, mistake, refusal, suggest
from sparkwright.results.key_states import render, rows
from sparkwright.site.fleet import PlannedHost

_Command = TypeVar("_Command", bound=Callable[..., Any])
_AGAIN = "run the command again when these hosts answer"


@dataclass(frozen=True)
class _Fleet:
    """The planned hosts and their connections."""

    hosts: Hosts
    planned: dict[str, PlannedHost]

    def files(self, name: str) -> dict[Path, KeyFile]:
        """Return the files of a key by path; different groups of hosts may have different files."""
        settings = [host.plan.settings for host in self.planned.values()]
        names = sorted({DEFAULT, *(key for own in settings for key in own.keys)})
        if name not in names:
            raise refusal(name, "no host has a key of this name", suggest(name, names))
        files = [rotated(own, name) for own in settings if name in (DEFAULT, *own.keys)]
        return {file.path: file for file in files}

    def apply(self, name: str) -> list[str]:
        """Send the current keys to every proxy.

        Return the hosts whose proxies may still have other keys.
        """
        from sparkwright.run import questions

        options = {"makes_secrets": True, "resolves": False}
        missing = self.hosts.ask(questions.renewed_keys, **options).failures
        plans = {host: self.planned[host].plan for host in missing}
        return [
            host
            for host, plan in plans.items()
            if plan.settings.address or any(service.proxy for service in plan.services)
            if name in (DEFAULT, *plan.settings.keys)
        ]


def _with_fleet(command: _Command) -> _Command:
    """Add ``[INVENTORY]``, ``--data``, the connection's options and ``--json``. The command has no
    argument for hosts, since a key applies to all hosts.
    """

    @wraps(command)
    def planned(*, hosts: Hosts, **more: Any) -> Any:
        return command(_Fleet(hosts, load(hosts).or_raise()), **more)

    options = connection_options(json_option(planned))
    return cast("_Command", selection.inventory_argument(Hosts)(options))


_name = option("key --name", default=DEFAULT, shell_complete=completion.keys)


@click.group("key")
def command() -> None:
    """API keys of the fleet and its clients: list, rotate, retire, revoke."""


@command.command("list")
@_with_fleet
def list_command(fleet: _Fleet, as_json: bool) -> None:
    """List keys by name, with their state and the hosts that have them; never print a key."""
    from sparkwright.run import questions

    answers = fleet.hosts.ask(questions.known_keys, resolves=False)
    settings = {name: host.plan.settings for name, host in fleet.planned.items()}
    listed = rows(settings, answers.answers)
    if as_json:
        print_json([asdict(row) for row in listed])
    else:
        echo(render(listed))
    sys.exit(int(bool(answers.failures)))


@command.command("rotate")
@_with_fleet
@_name
def rotate_command(fleet: _Fleet, name: str, as_json: bool) -> None:
    """Make a new key. The proxies accept both keys until `sparkwright key retire`.

    Once every host has the new key, the new key is the current key, for clients and for
    `sparkwright endpoints`. No service restarts and no request fails. A revoked key gets a new
    value.
    """
    files = fleet.files(name)
    retire = _call("retire", fleet, name)
    if begun := [file.old for file in files.values() if file.old.exists()]:
        observed = f"the previous rotation of {name!r} is not finished"
        raise UserError(mistake(str(old), observed, retire) for old in begun)
    for file in files.values():
        file.begin()
    if missing := fleet.apply(name):
        problem = f"the proxies may lack the new key. The old key stays valid; {_AGAIN}"
        _end(name, "unfinished", missing, problem, as_json=as_json)
    for file in files.values():
        file.promote()
    for host, planned in fleet.planned.items() if name == DEFAULT else ():
        for service in planned.plan.services:
            if not service.proxy:
                echo(f"{host}: {service.name} has no proxy: its engine accepts one key, and gets "
                           "the new key by a restart in the next deploy", err=True)  # fmt: skip
    until = f"the previous key is valid until `{retire}`"
    lines = [f"the new key is in {path}; {until}" for path in files]
    _end(name, "rotated", [], *lines, as_json=as_json)


@command.command("retire")
@_with_fleet
@_name
def retire_command(fleet: _Fleet, name: str, as_json: bool) -> None:
    """Delete the key that a rotation replaced, on the proxies and on the controller."""
    for file in fleet.files(name).values():
        if file.new.exists():
            observed = f"the rotation of {name!r} has not reached every host"
            raise refusal(str(file.new), observed, _call("rotate", fleet, name))
        file.retire()
    _forgotten(fleet, name, "retired", "only the current key is valid", as_json=as_json)


@command.command("revoke")
@click.argument("name", shell_complete=completion.keys)
@_with_fleet
def revoke_command(fleet: _Fleet, name: str, as_json: bool) -> None:
    """Revoke the key of one client, at once and on every host. Other keys stay valid.

    `sparkwright key rotate --name NAME` gives the client a new key.
    """
    if name == DEFAULT:
        observed = "the fleet's own key can't be revoked, since sparkwright itself uses the key"
        raise refusal(name, observed, f"{_call('rotate', fleet, name)}, then retire")
    for file in fleet.files(name).values():
        file.revoke()
    _forgotten(fleet, name, "revoked", "revoked", as_json=as_json)


def _forgotten(fleet: _Fleet, name: str, state: str, text: str, *, as_json: bool) -> NoReturn:
    missing = fleet.apply(name)
    if missing:
        text = f"the proxies may still accept the previous keys; {_AGAIN}, or deploy"
    _end(name, state, missing, text, as_json=as_json)


def _end(name: str, state: str, missing: list[str], *lines: str, as_json: bool) -> NoReturn:
    """Report a key's state and hosts with other keys; exit with 1 if there are such hosts."""
    if as_json:
        print_json({"name": name, "state": state, "missing": missing})
    for line in lines if missing or not as_json else ():
        echo(f"{', '.join(missing) or name}: {line}", err=bool(missing))
    sys.exit(int(bool(missing)))


def _call(action: str, fleet: _Fleet, name: str) -> str:
    option = "" if name == DEFAULT else f" --name {name}"
    return f"sparkwright key {action}{option} {fleet.hosts.inventory}"
