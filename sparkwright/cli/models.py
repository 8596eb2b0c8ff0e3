"""``sparkwright models`` and ``verify``: list, prune and verify weights on the hosts."""

import sys

import click

from sparkwright.cli.lib import options
from sparkwright.cli.lib.hosts import Hosts, finish, hosts_argument
from sparkwright.cli.lib.output import echo
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.lib.records import encode
from sparkwright.results.answers import Answers
from sparkwright.results.disk_usage import faults, render


@click.group("models")
def models() -> None:
    """Models and images on the hosts: list, prune."""


@models.command("list")
@hosts_argument
@options.json_option
def list_command(hosts: Hosts, as_json: bool) -> None:
    """List models, images and unfinished fetches, with sizes and the releases that need them."""
    from sparkwright.run import questions

    _show(hosts.ask(questions.used_disk, planless=True), as_json=as_json, pruning=False)


@models.command("prune")
@hosts_argument
@options.json_option
@options.dry_option
@options.yes_option
def prune_command(hosts: Hosts, as_json: bool, dry: bool, yes: bool) -> None:
    """Remove files that neither the plan nor a kept release needs (see keep_releases).

    Directories without a receipt are never removed. While the plan has a mistake, no model or image
    is removed.
    """
    from sparkwright.run import changes, questions

    options.confirm(f"Remove unused models and images of {hosts}?", yes=yes or dry)
    if dry:
        answers = hosts.ask(questions.used_disk, planless=True)
    else:
        answers = hosts.change(changes.pruned, planless=True)
    _show(answers, as_json=as_json, pruning=not dry)


def _show(result: Answers[DiskUsage], *, as_json: bool, pruning: bool) -> None:
    answers = result.answers
    if as_json:
        options.print_json(encode(answers))
    elif answers:
        echo(render(answers, pruning=pruning))
    finish(result, failed=any(map(faults, answers.values())))


@click.command("verify")
@hosts_argument
@options.pyinfra_json_option
def verify(hosts: Hosts, as_json: bool) -> None:
    """Hash every file of the planned models on their hosts again.

    A deploy compares only size and modification time; this command also finds corrupted bytes. The
    output names each damaged file, and the next deploy fetches it again. The command makes no other
    change.
    """
    from sparkwright.run import changes

    sys.exit(hosts.show(changes.verified, as_json=as_json, planless=True))
