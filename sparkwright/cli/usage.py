"""``sparkwright usage``: requests and tokens of the fleet's addresses by key, model and day."""

import datetime as dt
from dataclasses import asdict
from functools import partial

import click

from sparkwright.cli.lib import completion, options, selection
from sparkwright.cli.lib.hosts import Hosts, connection_options, finish
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.findings.user_error import refusal
from sparkwright.host.models import report
from sparkwright.host.models.document import USAGE
from sparkwright.results import usage as results


def _day(_: click.Context, __: click.Parameter, given: str) -> str:
    """Return the first day to count, in UTC."""
    days = given.removesuffix("d")
    if given != days and days.isascii() and days.isdigit() and int(days) <= 4000:
        return (dt.datetime.now(dt.UTC) - dt.timedelta(days=int(days))).date().isoformat()
    try:
        return dt.date.fromisoformat(given).isoformat()
    except ValueError:
        raise click.BadParameter(f"{given!r} is not a day: write 7d, or 2026-01-31") from None


@click.command("usage")
@partial(connection_options, but="--key")  # --key names a client's key in this command
@selection.names_argument(Hosts)
@options.option("usage --key", shell_complete=completion.keys)
@options.option("usage --model")
@options.option("usage --since", callback=_day)
@options.json_option
def command(hosts: Hosts, key: str | None, model: str | None, since: str, as_json: bool) -> None:
    """Show requests and tokens of each key and model, as the fleet's addresses counted them.

    Days are in UTC; with --json, rows are per day. Requests to a service's own port are not
    counted. Exit with 1 when an address did not answer.
    """
    from sparkwright.run import questions

    planned = load(hosts).or_raise()
    named = [host for host, each in planned.items() if each.plan.settings.address]
    if not named:
        problem = "no host has an address for all models: only this address counts requests"
        raise refusal(str(hosts), problem, "set address for a host (docs/proxy.md)")
    question = questions.answered(
        report, lambda _: report.UsageRequest(USAGE, since), tuple[report.UsageRow, ...]
    )
    answers = hosts.only(named).ask(question, resolves=False)
    every = results.summed(row for rows in answers.answers.values() for row in rows)
    if not answers.failures and not key and not model:
        results.keep(every)
    rows = [row for row in every if key in (None, row.key) and model in (None, row.model)]
    if as_json:
        options.print_json([asdict(row) for row in rows])
    elif answers.answers:
        echo(results.render(rows))
    finish(answers)
