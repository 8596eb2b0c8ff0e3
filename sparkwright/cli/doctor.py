"""``sparkwright doctor``: faults of hosts and services, with causes and remedies."""

import sys
from collections.abc import Iterator
from contextlib import suppress

import click

from sparkwright.checks.fabric.groups import of_looks, on_connectx
from sparkwright.checks.fabric.judge import CHECKS
from sparkwright.checks.service.diagnose import diagnose_all, render
from sparkwright.cli.lib import explain as explanation
from sparkwright.cli.lib.hosts import Hosts, finish, hosts_argument
from sparkwright.cli.lib.options import json_option, option, print_findings
from sparkwright.findings.finding import Finding, errors_first
from sparkwright.findings.render import paint
from sparkwright.findings.user_error import UserError


@click.command("doctor")
@hosts_argument
@option("explain")
@json_option
def command(hosts: Hosts, explain: str | None, as_json: bool) -> None:
    """Examine every host: symptom, likely cause, remedy and source. The command changes nothing,
    and sends each idle service a short request of its kind.

    An examination takes about ten seconds, or half a minute if a service seems to hang, and
    includes the ConnectX-7 fabric of a cluster. Exit with 0 only if every host answered without a
    finding.
    """
    if explain is not None:
        explanation.explain(explain, as_json=as_json)
        sys.exit()
    from sparkwright.run import questions

    answers = hosts.ask(questions.facts, planless=True)
    findings = diagnose_all(answers.answers)
    for name, finding in _of_fabrics(hosts, tuple(answers.answers)):
        findings[name] = errors_first([*findings[name], finding])
    every = [finding for each in findings.values() for finding in each]
    print_findings(every, render(findings, paint), as_json=as_json)
    finish(answers, failed=bool(every))


def _of_fabrics(hosts: Hosts, answered: tuple[str, ...]) -> Iterator[tuple[str, Finding]]:
    """Yield host and finding for the ConnectX-7 fabrics of hosts that serve together."""
    from sparkwright.run import questions

    with suppress(UserError):  # the first query has printed the message
        joined = tuple(name for name in on_connectx(hosts.everyone) if name in answered)
        if joined:
            looks = hosts.only(joined).ask(questions.fabric, planless=True).answers
            for fabric in of_looks(looks):
                for finding in CHECKS.findings(fabric):
                    yield finding.subject.host or next(iter(fabric.states)), finding
