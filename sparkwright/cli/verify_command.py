"""``sparkwright verify``: the weights on the hosts hashed again. Runs pyinfra."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from sparkwright.problems import Problem, UserError


@click.command("verify")
@click.argument("inventory", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--limit", multiple=True, metavar="HOST", help="Only this host or group (repeatable)."
)
def command(inventory: Path, limit: tuple[str, ...]) -> None:
    """Hash every file of the planned models on their hosts again.

    A deploy trusts files by size and time of change; this finds what a disk has turned since. A
    wrong file is named, and the next deploy fetches it anew. Changes nothing else.
    """
    beside = Path(sys.executable).with_name("pyinfra")
    pyinfra = str(beside) if beside.exists() else shutil.which("pyinfra")
    if pyinfra is None:
        raise UserError([Problem("verify", "pyinfra is not installed", "see the README")])
    words = [pyinfra, "--yes", *(word for name in limit for word in ("--limit", name))]
    sys.stdout.flush()
    os.execv(pyinfra, [*words, str(inventory), "roles.weights.check.verify"])
