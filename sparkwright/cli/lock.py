"""``sparkwright lock``: pin every tag and revision of a fleet."""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from sparkwright.checks.host.judge import CHECKS as HOST_CHECKS
from sparkwright.cli.lib.options import inventory_argument, json_option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.findings.finding import Finding, errors
from sparkwright.findings.user_error import UserError
from sparkwright.plan.plan import HostPlan
from sparkwright.resolve import build_context
from sparkwright.resolve.lock import (
    Lock,
    from_resolution,
    read_lock,
    render_lock,
    to_resolution,
    unused,
    with_contexts,
    without_contexts,
)
from sparkwright.resolve.pickles import pickle_symptom
from sparkwright.resolve.recipe_registry import with_registries
from sparkwright.resolve.references import References
from sparkwright.resolve.resolution import Resolution
from sparkwright.site.fleet import PlannedHost
from sparkwright.site.resolution import ask


@click.command("lock")
@inventory_argument
@click.option("--upgrade", is_flag=True, help="Take everything anew, not only what is missing.")
@click.option("--check", "check", is_flag=True, help="Only say whether the lock is complete.")
@json_option
def command(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    upgrade: bool,
    check: bool,
    as_json: bool,
) -> None:
    """Pin every tag to a digest and every model to a commit, in fleet.lock.

    With a lock a run resolves nothing from outside; without one it takes what the tags are then.
    Asks registries and hubs only for what is not locked yet, and nobody with --check.
    """
    if limit:
        raise click.UsageError("a lock is of the whole inventory: leave --limit out")
    hosts = load(inventory, overrides, (), anew=upgrade).or_raise()
    reports = []
    for file in sorted({host.plan.settings.lock_file for host in hosts.values()}):
        own = {name: host for name, host in hosts.items() if host.plan.settings.lock_file == file}
        if check:
            reports.append(_check(Path(file), [host.plan for host in own.values()]))
        else:
            reports.append(_write(Path(file), own, upgrade=upgrade))
    if as_json:
        print_json([vars(report) for report in reports])
    else:
        for report in reports:
            report.show()
    sys.exit(int(any(report.wrong for report in reports)))


@dataclass(frozen=True)
class _Report:
    """What became of one lock: what is wrong with it, or which pins changed in it."""

    file: str
    state: str
    wrong: list[str]
    changes: list[str]

    def show(self) -> None:
        for line in self.wrong:
            echo(line)
        for line in self.changes:
            echo(click.style(line, fg="green" if line[0] == "+" else "red"))
        echo(f"{self.file}: {self.state}")


def _write(path: Path, hosts: dict[str, PlannedHost], *, upgrade: bool) -> _Report:
    plans = [host.plan for host in hosts.values()]
    kept = None if upgrade else read_lock(path)
    resolution = Resolution(images={}, models={})
    if kept is None or not _complete(plans, kept, str(path)):
        resolution = ask(hosts)
    lock = from_resolution(_named(plans), resolution, kept)
    lock = with_contexts(_named(plans), lock, build_context.CACHE)
    lock = with_registries(_registries(plans), lock, upgrade=upgrade)
    text = render_lock(lock)
    pickles = _pickles(plans, lock, str(path))
    wrong = [one.observed for one in errors(pickles)]
    for one in pickles:
        echo(f"{one.severity.value}: {one.observed}. {one.remedy}", err=True)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if text == before:
        return _Report(str(path), "nothing changes", wrong, [])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    state = "written. Look at its diff, and commit it."
    return _Report(str(path), state, wrong, _diff(before, text))


def _named(plans: list[HostPlan]) -> list[References]:
    return [plan.references for plan in plans]


def _registries(plans: list[HostPlan]) -> set[str]:
    return {address for plan in plans for address in plan.settings.registries.values()}


def _complete(plans: list[HostPlan], lock: Lock, file: str) -> bool:
    try:
        to_resolution(_named(plans), lock, file)
    except UserError:
        return False
    return True


def _check(path: Path, plans: list[HostPlan]) -> _Report:
    lock = read_lock(path)
    if lock is None:
        return _Report(str(path), "there is no lock", ["no lock"], [])
    wrong: list[str] = []
    try:
        wrong += [one.observed for one in errors(_pickles(plans, lock, str(path)))]
    except UserError as error:
        wrong += [problem.observed for problem in error.findings]
    wrong += [
        f"{name} is built, and its context is not pinned: run 'sparkwright lock INVENTORY'"
        for name in without_contexts(_named(plans), lock)
    ]
    wrong += [
        f"registry {address} is not pinned: run 'sparkwright lock INVENTORY'"
        for address in sorted(_registries(plans) - set(lock.registries or ()))
    ]
    wrong += [f"{name} is locked, and no host needs it" for name in unused(_named(plans), lock)]
    state = "incomplete" if wrong else "complete"
    counts = f"{len(lock.images)} images, {len(lock.models)} models"
    return _Report(str(path), f"{state}, {counts}", wrong, [])


def _pickles(plans: list[HostPlan], lock: Lock, file: str) -> list[Finding]:
    """Each model's pickles that are not fetched.

    Raises:
        UserError: for everything that is not locked.
    """
    resolution = to_resolution(_named(plans), lock, file)
    symptoms = (
        pickle_symptom(resolution.model(model), plan.settings.allowed_pickles)
        for plan in plans
        for model in plan.references.models
    )
    return HOST_CHECKS.report(filter(None, symptoms))


def _diff(before: str, after: str) -> list[str]:
    """The changed pins; files of new models would only hide them."""
    return [
        line
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="")
        if line[:1] in "+-"
        and not line.startswith(("+++", "---"))
        and re.search(r"digest:|commit:|context:|^.  \S+:($| [0-9a-f]{40}$)", line)
    ]
