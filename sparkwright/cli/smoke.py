"""``sparkwright smoke``: test every ability of the services."""

from datetime import UTC, datetime
from functools import partial

import click

from sparkwright.checks.smoke.verdict import render, save, verdicts
from sparkwright.cli.lib.hosts import Hosts, finish, services_argument
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.findings.render import paint


@click.command("smoke")
@services_argument
@json_option
def command(hosts: Hosts, as_json: bool) -> None:
    """Test every service for each ability that its recipe declares.

    The tests cover names, key, chat, stream, thinking, tools, JSON, images, long prompts, the
    context's end, drafts, cached prefixes, and as many concurrent requests as the service accepts.
    The tests take minutes and put load on the services, but change nothing. .sparkwright/smoke/
    keeps the results. Exit with 1 when a check fails or a host does not answer.
    """
    from sparkwright.run import questions

    echo("Testing with real requests; this takes some minutes.", err=True)
    answers = hosts.ask(partial(questions.deep_smoke, meant=hosts.means), planless=True)
    now = datetime.now(UTC)
    results = [
        verdict
        for host, tested in answers.answers.items()
        for verdict in verdicts(host, tested, now)
    ]
    save(results)
    if as_json:  # includes passed checks
        print_json([verdict.model_dump() for verdict in results])
    elif results:
        echo(render(results, paint))
    finish(answers, failed=not results or any(verdict.findings for verdict in results))
