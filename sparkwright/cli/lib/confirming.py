"""Asking before something is changed or gone: ``--yes``, ``--dry``, or an answer."""

from __future__ import annotations

import sys

import click

from sparkwright.findings.user_error import UserError, mistake

yes_option = click.option("--yes", is_flag=True, help="Do not ask before it is done.")
dry_option = click.option("--dry", is_flag=True, help="Show what would be done; change nothing.")


def confirm(question: str, *, yes: bool, dry: bool = True) -> None:
    """Go on only when the user says so.

    Args:
        dry: whether the command has ``--dry``, and may be told of it.

    Raises:
        click.Abort: they do not.
        UserError: nobody can answer.
    """
    if yes:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        remedy = "add --yes, or --dry to only look" if dry else "add --yes"
        raise UserError([mistake("command line", f"{question} Nobody said yes", remedy)]) from None
    if not agreed:
        raise click.Abort
