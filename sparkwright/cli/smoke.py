"""``sparkwright smoke``: tests everything that every host's services offer."""

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

    Tests cover names, key, chat, stream, thinking, tools, JSON, images, long prompts, the context's
    end, drafts, cached prefixes, and as many requests at once as the service accepts. The test
    takes minutes and loads the services; it changes nothing. .sparkwright/smoke/ keeps the results.
    Exit code 1 when a check fails or a host does not answer.
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
    if as_json:  # with what passed
        print_json([verdict.model_dump() for verdict in results])
    elif results:
        echo(render(results, paint))
    finish(answers, failed=not results or any(verdict.findings for verdict in results))
