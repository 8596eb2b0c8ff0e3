"""``sparkwright smoke``: tests everything that every host's services offer."""

from datetime import UTC, datetime
from functools import partial

import click

from sparkwright.checks.smoke.verdict import render, save, verdicts
from sparkwright.cli.lib.connecting import services_argument
from sparkwright.cli.lib.findings import format_option, paint, print_findings
from sparkwright.cli.lib.hosts import Hosts, finish
from sparkwright.cli.lib.options import print_json
from sparkwright.cli.lib.output import echo


@click.command("smoke")
@services_argument
@format_option
def command(hosts: Hosts, form: str) -> None:
    """Ask every service for everything that its recipe promises.

    Names, key, chat, stream, thinking, tools, JSON, images, long prompts, the context's end,
    drafts, cached prefixes, and as many requests at once as it lets in. It takes minutes and loads
    the services; nothing is changed. Results also lie in .sparkwright/smoke/. Exit code 1 when a
    check fails or a host does not answer.
    """
    from sparkwright.run import questions

    echo("Asking for real answers; this takes some minutes.", err=True)
    answers = hosts.ask(partial(questions.deep_smoke, meant=hosts.means), planless=True)
    now = datetime.now(UTC)
    results = [
        verdict
        for host, tested in answers.answers.items()
        for verdict in verdicts(host, tested, now)
    ]
    save(results)
    findings = [finding for verdict in results for finding in verdict.findings]
    if form == "json":  # with what passed
        print_json([verdict.model_dump() for verdict in results])
    else:
        print_findings(findings, form, render(results, paint) if results else "")
    finish(answers, failed=bool(findings) or not results)
