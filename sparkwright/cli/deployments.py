"""``sparkwright status``, ``history`` and ``diff``: releases of every host, read from the hosts."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from sparkwright.checks.service.diagnose import watch_findings
from sparkwright.cli.lib.hosts import Hosts, finish, misspelt, services_argument
from sparkwright.cli.lib.options import json_option, option, print_json
from sparkwright.cli.lib.output import echo, screen
from sparkwright.findings.render import data, paint
from sparkwright.host.lib.records import encode
from sparkwright.results import status as results
from sparkwright.results.answers import Answers, keep
from sparkwright.text.visible import paragraph

#: Seconds between two queries of `status --watch`.
_INTERVAL = 5.0


def deployments(hosts: Hosts, *, planless: bool = True) -> Answers[results.Deployment]:
    """Query the hosts; their history and the watch's findings are saved for the fleet's page.

    Args:
        planless: same as for ``Hosts.ask``.
    """
    from sparkwright.run import questions

    answers = hosts.ask(questions.deployment, planless=planless)
    if result := answers.answers:
        watched = [
            finding
            for host, deployment in result.items()
            for finding in watch_findings(host, deployment.watch, deployment.now)
        ]
        record = {"history": results.switches(result), "findings": data(watched)}
        keep(Path(".sparkwright/status.json"), record)
    if misspelt(hosts.services, ({*seen.services, *seen.planned} for seen in result.values())):
        finish(answers, unknown=True)
    meant = {host: seen.only(partial(hosts.means, host)) for host, seen in result.items()}
    return replace(answers, answers=meant)


@click.command("status")
@services_argument
@json_option
@option("status --watch")
def status(hosts: Hosts, as_json: bool, watch: bool) -> None:
    """Show release, tag, uptime, restarts, health and drift of every service, and the watch's
    findings.

    Exit with 0 only when every host answered, every service runs as planned and is healthy, and the
    watch reports no error. --watch queries each host every five seconds, until Ctrl-C.
    """
    if watch:
        _watch(hosts, as_json=as_json)
    answers = deployments(hosts)
    result = answers.answers
    if as_json:
        print_json({host: results.summary(seen) for host, seen in result.items()})
    elif result:
        echo(results.render_status(result, paint))
    finish(answers, failed=not all(map(results.well, result.values())))


def _watch(hosts: Hosts, *, as_json: bool) -> NoReturn:
    """Show the status on the terminal's alternate screen, until every host has disconnected."""
    from sparkwright.run.questions import deployment, follow

    if as_json or not sys.stdout.isatty():
        raise click.UsageError("--watch needs a terminal: leave out --json and redirections")
    fleet: dict[str, results.Deployment] = {}
    silent: dict[str, str] = {}
    with hosts.session(planless=True) as session, screen() as show:
        watch = partial(follow, question=deployment, interval=_INTERVAL)
        for host, seen in filter(None, session.watch(watch)):
            if isinstance(seen, results.Deployment):
                silent.pop(host, None)
                fleet[host] = seen.only(partial(hosts.means, host))
            else:
                fleet.pop(host, None)
                silent[host] = paragraph(str(seen))
            table = results.render_status(dict(sorted(fleet.items())), paint)
            lines = [click.style(f"{host}: {why}", fg="red") for host, why in silent.items()]
            show("\n".join([table, *lines]))
    sys.exit(1)


@click.command("history")
@services_argument
@json_option
@click.option("--last", default=40, show_default=True, help="Number of entries to show.")
def history(hosts: Hosts, as_json: bool, last: int) -> None:
    """Show switches, starts, stops and maintenance, with user, time, reason and duration.

    Exit with 0 only when every host answered.
    """
    answers = deployments(hosts)
    result = answers.answers
    if as_json:
        print_json({host: encode(results.past(seen)) for host, seen in result.items()})
    elif result:
        echo(results.render_history(result, last))
    finish(answers)


@click.command("diff")
@services_argument
@json_option
def diff(hosts: Hosts, as_json: bool) -> None:
    """Show a deploy's changes to files of services, line by line.

    Exit with 1 when anything differs or a host does not answer.
    """
    answers = deployments(hosts, planless=False)
    result = answers.answers
    text = results.render_diff(result)
    if as_json:
        texts = {host: results.render_diff({host: seen}) for host, seen in result.items()}
        print_json([{"host": host, "text": part} for host, part in texts.items() if part])
    elif result:
        echo(text or f"no differences on {', '.join(result)}", err=not text)
    finish(answers, failed=bool(text))
