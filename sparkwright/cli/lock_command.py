"""``sparkwright lock``: pin every tag and revision of a fleet."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import click

from sparkwright.cli.options import inventory_argument, load
from sparkwright.lock import Lock, from_resolution, read_lock, render_lock, to_resolution, unused
from sparkwright.pins import ask
from sparkwright.plan import HostPlan
from sparkwright.problems import UserError
from sparkwright.resolve import Resolution


@click.command("lock")
@inventory_argument
@click.option("--upgrade", is_flag=True, help="Take everything anew, not only what is missing.")
@click.option("--check", "check", is_flag=True, help="Only say whether the lock is complete.")
def command(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    upgrade: bool,
    check: bool,
) -> None:
    """Pin every tag to a digest and every model to a commit, in fleet.lock.

    With a lock a run resolves nothing from outside; without one it takes what the tags are then.
    Asks registries and hubs only for what is not locked yet, and nobody with --check.
    """
    if limit:
        raise click.UsageError("a lock is of the whole inventory: leave --limit out")
    hosts = load(inventory, overrides, ()).or_raise()
    changed = False
    for file in sorted({host.plan.settings.lock_file for host in hosts.values()}):
        path = Path(file)
        own = {name: host for name, host in hosts.items() if host.plan.settings.lock_file == file}
        plans = [host.plan for host in own.values()]
        known = read_lock(path)
        if check:
            changed |= _check(path, known, plans)
            continue
        kept = None if upgrade else known
        resolution = Resolution({}, {})
        if kept is None or not _complete(plans, kept, file):
            resolution = ask(own)
        text = render_lock(from_resolution(plans, resolution, kept))
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if text == before:
            click.echo(f"{path}: nothing changes")
            continue
        path.write_text(text, encoding="utf-8")
        _diff(before, text)
        click.echo(f"{path}: written. Look at its diff, and commit it.")
    sys.exit(int(changed))


def _complete(plans: list[HostPlan], lock: Lock, file: str) -> bool:
    try:
        to_resolution(plans, lock, file)
    except UserError:
        return False
    return True


def _check(path: Path, lock: Lock | None, plans: list[HostPlan]) -> bool:
    """Whether anything is wrong with the lock; says what."""
    if lock is None:
        click.echo(f"{path}: there is no lock")
        return True
    wrong = False
    try:
        to_resolution(plans, lock, str(path))
    except UserError as error:
        wrong = True
        for problem in error.problems:
            click.echo(f"{problem.where}: {problem.what}")
    for name in unused(plans, lock):
        wrong = True
        click.echo(f"{path}: {name} is locked, and no host needs it")
    if not wrong:
        click.echo(f"{path}: complete, {len(lock.images)} images, {len(lock.models)} models")
    return wrong


def _diff(before: str, after: str) -> None:
    """The changed pins; files of new models would only hide them."""
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""):
        if (
            line[:1] in "+-"
            and any(word in line for word in ("digest:", "commit:", "@", "tag"))
            and not line.startswith(("+++", "---"))
        ):
            click.echo(click.style(line, fg="green" if line[0] == "+" else "red"))
