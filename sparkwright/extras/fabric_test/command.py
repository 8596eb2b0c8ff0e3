"""``sparkwright fabric test``: the fabric judged, and measured against published figures."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from sparkwright.checks.fabric.facts import Fabric
from sparkwright.checks.fabric.groups import answered
from sparkwright.checks.fabric.judge import CHECKS
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.findings import paint
from sparkwright.cli.lib.hosts import ask_hosts
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.extras.fabric_test.measure import plan
from sparkwright.extras.fabric_test.result import FabricResult, result, rows
from sparkwright.findings.render import text
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.host.fabric_measure import MeasureAnswer, Plan
from sparkwright.host.lib.records import decode, encode
from sparkwright.text.table import columns

DOCUMENT = list[FabricResult]


@click.command("test")
@hosts_argument
@click.option("--look", is_flag=True, help="Only judge cables, addresses and devices.")
@json_option
def command(
    inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...], look: bool, as_json: bool
) -> None:
    """Judge the fabric between hosts, and measure it against published figures.

    A ping that fills the MTU on every rail, ib_write_bw on both twins at once where it is
    installed, and an all-gather through the serving image itself. It takes a minute and some GiB of
    memory on each host, and changes nothing. Exit code 1 when an error is found, a measure fails,
    or a host does not answer.
    """
    answers, silent = ask_hosts(inventory, limit, overrides, "roles.fabric.looked")
    found = answered(answers)
    if not found and answers:
        what = "no host has a ConnectX"
        raise UserError([mistake(str(inventory), what, "name other hosts with --limit")])
    planned = [Plan() if look else _plan(one, answers) for one in found]
    every = _together(planned)
    measured: dict[str, MeasureAnswer] = {}
    hosts = tuple(dict.fromkeys((*every.pings, *every.gathers)))
    if hosts:
        said, more = ask_hosts(
            inventory, hosts, overrides, "roles.fabric.measured", plan=json.dumps(encode(every))
        )
        measured = {name: decode(MeasureAnswer, one) for name, one in said.items()}
        silent = [*silent, *more]
    results = [
        _result(one, what, measured, look=look) for one, what in zip(found, planned, strict=True)
    ]
    if as_json:
        print_json([asdict(one) for one in results])
    for one in [] if as_json else results:
        echo(_rendered(one))
    sys.exit(int(bool(silent) or not results or not all(one.well for one in results)))


def _plan(fabric: Fabric, answers: Mapping[str, Any]) -> Plan:
    return plan(
        fabric,
        {name: str(answers[name]["image"]) for name, state in fabric.states.items() if state.image},
        {name: "ib_write_bw" in state.tools for name, state in fabric.states.items()},
    )


def _result(
    fabric: Fabric, planned: Plan, measured: Mapping[str, MeasureAnswer], *, look: bool
) -> FabricResult:
    found = result(fabric, CHECKS.findings(fabric), planned, measured)
    return replace(found, measures=()) if look else found


def _together(planned: list[Plan]) -> Plan:
    """All fabrics' in one run: each is between hosts of its own."""
    return Plan(
        {host: one for each in planned for host, one in each.pings.items()},
        tuple(pair for each in planned for pair in each.pairs),
        {host: one for each in planned for host, one in each.gathers.items()},
    )


def _rendered(one: FabricResult) -> str:
    head = f"{', '.join(one.hosts)}: {one.shape}, {'well' if one.well else 'not well'}"
    said = text(one.findings, indent=2, paint=paint)
    table = columns(rows(one)) if one.measures else []
    return "\n".join(filter(None, [head, said, *(f"  {line}" for line in table)]))
