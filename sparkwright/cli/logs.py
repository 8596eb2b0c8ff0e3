"""``sparkwright logs``: services' logs, merged over all hosts; ``-f`` follows over ssh."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import click

from sparkwright.cli.lib.hosts import Hosts, complain, finish, misspelt, services_argument
from sparkwright.cli.lib.journals import echo_line, follow, of_host
from sparkwright.cli.lib.options import json_option, option, print_json
from sparkwright.engines import log_patterns
from sparkwright.host import logs
from sparkwright.host.lib.records import encode
from sparkwright.text.visible import visible

if TYPE_CHECKING:
    from sparkwright.run.state import HostRun

_SPAN = re.compile(r"([0-9]{1,7})(s|m|min|h|d|w)(?: ago)?")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def _since(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    """Return a time in journalctl's syntax, independent of the host's clock and time zone."""
    if given is None:
        return None
    if match := _SPAN.fullmatch(given.strip()):
        return f"-{int(match[1]) * _SECONDS[match[2]]}s"
    try:
        return f"@{dt.datetime.fromisoformat(given.strip()).timestamp():.0f}"
    except (ValueError, OverflowError, OSError):
        raise click.BadParameter(
            f"{given!r} is not a time: write 30s, 10m, 2h, 1d, or 2026-01-31 14:00 (local time)"
        ) from None


@click.command("logs")
@services_argument
@option("logs -f")
@option("logs -n", type=click.IntRange(0, 10_000))
@option("logs --since", callback=_since)
@option("logs --probes")
@json_option
def command(
    hosts: Hosts, following: bool, lines: int, since: str | None, probes: bool, as_json: bool
) -> None:
    """Show the services' logs of all hosts, oldest first; control characters are escaped.

    Without --probes, access lines of sparkwright's own checks are left out. Times are in this
    machine's time zone. -f follows the logs until Ctrl-C, over the system's own ssh; with --json it
    prints one object per line. Exit with 1 when a host did not answer, with 2 when no host has the
    service.
    """
    from sparkwright.run import questions

    hidden = "" if probes else "|".join(log_patterns("probes"))

    def request(run: HostRun) -> logs.LogsRequest:
        names = hosts.services_of(run.name)
        return logs.LogsRequest(names, run.settings.services_root, lines, since, hidden)

    result = hosts.ask(questions.answered(logs, request, logs.LogsAnswer), planless=True)
    answers = result.answers
    unknown = misspelt(hosts.named_services, (answer.service_names for answer in answers.values()))
    for name, answer in answers.items():
        if answer.fault or not (answer.lines or following or unknown):
            complain(name, visible(answer.fault or _nothing(answer)))
    # The sort by the hosts' times is stable, so lines of one host stay in order.
    every = [line for name, answer in answers.items() for line in of_host(name, answer.lines)]
    shown = sorted(every, key=lambda line: line.at)
    if as_json and not following:
        print_json([encode(line) for line in shown])
    else:
        for line in shown:
            echo_line(line, as_json=as_json)
    failed = any(answer.fault for answer in answers.values())
    if following and answers and not unknown:
        inputs = {host.name: host for host in hosts.read()}
        followed = {name: (inputs[name], answer) for name, answer in answers.items()}
        follow(followed, hosts.means, hidden, as_json=as_json)
        failed = True  # follow() returns only when every host has disconnected
    finish(result, failed=failed, unknown=bool(unknown))


def _nothing(answer: logs.LogsAnswer) -> str:
    if answer.cursor:
        return "the log has only access lines of checks (--probes shows them)"
    return "nothing was logged" if answer.service_names else "no service was ever started here"
