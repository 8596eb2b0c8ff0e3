"""``sparkwright models``: what lies on the hosts, and what of it can go."""

from __future__ import annotations

import sys

import click

from sparkwright.cli.lib.confirming import confirm, dry_option, yes_option
from sparkwright.cli.lib.connecting import hosts_argument
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.cli.lib.options import json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.lib.records import encode
from sparkwright.results.answers import Answers
from sparkwright.results.disk_usage import render


@click.group("models")
def command() -> None:
    """Models and images on the hosts: list, prune."""


@command.command("list")
@hosts_argument
@json_option
def list_command(hosts: Hosts, as_json: bool) -> None:
    """List models, images and unfinished fetches with their sizes, and who needs them."""
    from sparkwright.run import questions

    answers = hosts.ask(questions.used_disk, planless=True)
    _show(answers, as_json=as_json, pruning=False)


@command.command("prune")
@hosts_argument
@json_option
@dry_option
@yes_option
def prune_command(hosts: Hosts, as_json: bool, dry: bool, yes: bool) -> None:
    """Remove what neither the plan nor a kept release needs (see keep_releases).

    Directories without a receipt are never removed; while the plan is broken, no model and no image
    either.
    """
    from sparkwright.run import changes, questions

    confirm(f"Remove what nobody needs of the models and images of {hosts}?", yes=yes or dry)
    if dry:
        answers = hosts.ask(questions.used_disk, planless=True)
    else:
        answers = hosts.change(changes.pruned, planless=True)
    _show(answers, as_json=as_json, pruning=not dry)


def _show(found: Answers[DiskUsage], *, as_json: bool, pruning: bool) -> None:
    answers = found.answers
    if as_json:
        print_json(encode(answers))
    elif answers:
        echo(render(answers, pruning=pruning))
    faults = [
        thing
        for usage in answers.values()
        for thing in usage.things
        if thing.fault and thing.fault != "has no receipt"
    ]
    sys.exit(int(bool(faults) or bool(found.failures) or not answers))
