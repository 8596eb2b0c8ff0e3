"""``sparkwright fabric test``: the fabric judged, and measured against published figures."""

import sys
from dataclasses import asdict

import click

from sparkwright.checks.fabric.groups import of_looks
from sparkwright.checks.fabric.judge import CHECKS
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.findings import paint
from sparkwright.cli.lib.hosts import Hosts, reported
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.extras.fabric_test.measure import measured, plan
from sparkwright.extras.fabric_test.result import FabricResult, judged
from sparkwright.findings.render import text
from sparkwright.findings.user_error import refusal
from sparkwright.text.table import columns

DOCUMENT = list[FabricResult]
_HEADS = ("TEST", "WHERE", "RESULT", "MEASURED", "PUBLISHED", "")


@click.command("test")
@hosts_argument
@click.option("--look", is_flag=True, help="Only judge cables, addresses and devices.")
@json_option
def command(hosts: Hosts, look: bool, as_json: bool) -> None:
    """Judge the fabric between hosts, and measure it against published figures.

    A ping that fills the MTU on every rail, ib_write_bw on both twins at once where it is
    installed, and an all-gather through the serving image itself. It takes a minute and some GiB of
    memory on each host, and changes nothing. Exit code 1 when an error is found, a measure fails,
    or a host does not answer.
    """
    from sparkwright.run import questions

    with hosts.session(waiting=True) as session:
        looks = session.ask(questions.fabric)
        fabrics = of_looks(looks.answers)
        if not fabrics and looks.answers:
            remedy = "name other hosts"
            raise refusal(str(hosts.inventory), "no host has a ConnectX", remedy)
        images = {name: each.image for name, each in looks.answers.items()}
        plans = [[] if look else plan(fabric, images) for fabric in fabrics]
        answers = measured(session, plans)
    reported(looks)
    results = [
        FabricResult(
            tuple(fabric.states), fabric.shape, tuple(CHECKS.findings(fabric)),
            () if look else judged(fabric, steps, taken),
        )
        for fabric, steps, taken in zip(fabrics, plans, answers, strict=True)
    ]  # fmt: skip
    if as_json:
        print_json([asdict(each) for each in results])
    for each in [] if as_json else results:
        echo(_rendered(each))
    sys.exit(int(bool(looks.failures) or not results or not all(each.well for each in results)))


def _rendered(result: FabricResult) -> str:
    head = f"{', '.join(result.hosts)}: {result.shape}, {'well' if result.well else 'not well'}"
    findings = text(result.findings, indent=2, paint=paint)
    rows = [measure.row for measure in result.measures]
    table = [f"  {line}" for line in columns([_HEADS, *rows])] if rows else []
    return "\n".join(filter(None, [head, findings, *table]))
