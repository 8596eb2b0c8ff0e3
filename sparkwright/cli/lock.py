"""``sparkwright lock``: pin every tag and revision of an inventory."""

import difflib
import re
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from sparkwright.checks.host.judge import CHECKS as HOST_CHECKS
from sparkwright.cli.lib.options import json_option, option, print_json
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.cli.lib.selection import Selection, names_argument
from sparkwright.findings.finding import Finding, errors
from sparkwright.findings.user_error import Problems, UserError, suggest
from sparkwright.plan.plan import HostPlan
from sparkwright.resolve import build_context
from sparkwright.resolve import lock as locks
from sparkwright.resolve.lock import Resolution
from sparkwright.resolve.pickles import pickle_symptom
from sparkwright.resolve.recipe_registry import with_registries
from sparkwright.site.fleet import PlannedHost
from sparkwright.site.resolution import ask


@click.command("lock")
@names_argument()
@option("lock --upgrade")
@option("lock --patched")
@option("lock --check")
@json_option
def command(
    hosts: Selection, upgrade: bool, confirmed: tuple[str, ...], check: bool, as_json: bool
) -> None:
    """Pin every tag to a digest and every model to a commit, in fleet.lock.

    With a lock, a run uses the pinned content and resolves nothing from outside; without a lock, a
    run uses the tags' current content. `lock` queries registries and hubs only for unlocked
    entries, and never with --check.
    """
    if hosts.limit:
        raise click.UsageError("a lock covers the whole inventory: leave out the host")
    if check and confirmed:
        raise click.UsageError("--check writes nothing: leave --patched out")
    planned = load(hosts, anew=upgrade).or_raise()
    services = [service for host in planned.values() for service in host.plan.services]
    recipes = {service.recipe.name for service in services if service.recipe.patches}
    for name in [name for name in confirmed if name not in recipes]:
        near = suggest(name, sorted(recipes))
        raise click.UsageError(f"no service has a recipe {name!r} with patches; {near}")
    reports = locked(planned, upgrade=upgrade, confirmed=confirmed, check=check)
    if as_json:
        print_json([vars(report) for report in reports])
    for report in [] if as_json else reports:
        for line in report.faults:
            echo(line)
        for line in report.changes:
            echo(click.style(line, fg="green" if line[0] == "+" else "red"))
        echo(f"{report.file}: {report.state}")
    sys.exit(int(any(report.faults for report in reports)))


@dataclass(frozen=True)
class LockReport:
    """Result for a lock file: its faults, or its changed pins."""

    file: str
    state: str
    faults: list[str]
    changes: list[str] = field(default_factory=list)


def locked(
    hosts: Mapping[str, PlannedHost],
    *,
    upgrade: bool = False,
    confirmed: Collection[str] = (),
    check: bool = False,
) -> list[LockReport]:
    """Write every lock file of an inventory's hosts, or only check the files.

    Args:
        confirmed: recipes whose patches fit their locked images.

    Raises:
        UserError: an entry can't be resolved; the message names every such entry.
    """
    by_file: dict[str, dict[str, PlannedHost]] = {}
    for name, host in hosts.items():
        by_file.setdefault(host.plan.settings.lock_file, {})[name] = host
    return [
        _check(Path(file), [host.plan for host in own.values()])
        if check
        else _write(Path(file), own, upgrade=upgrade, confirmed=confirmed)
        for file, own in sorted(by_file.items())
    ]


def _write(
    path: Path, hosts: dict[str, PlannedHost], *, upgrade: bool, confirmed: Collection[str]
) -> LockReport:
    plans = [host.plan for host in hosts.values()]
    references = [plan.references for plan in plans]
    kept, resolution = locks.read_lock(path), None
    if kept and upgrade:  # confirmed patches stay confirmed for a new image
        kept = locks.Lock(images={}, models={}, patched=kept.patched)
    with suppress(UserError):  # some models are not locked yet
        if kept and locks.to_resolution(references, kept, str(path), bases=False):
            resolution = Resolution(images={}, models={})
    resolution = resolution or ask(hosts)
    lock = locks.from_resolution(references, resolution, kept, confirmed)
    lock = locks.with_contexts(references, lock, build_context.CACHE)
    lock = with_registries(_registries(plans), lock, upgrade=upgrade)
    text = locks.render_lock(lock)
    findings = _pickles(plans, lock, str(path))
    findings += locks.changed_bases(references, lock, str(path))
    observeds = [finding.observed for finding in errors(findings)]
    for finding in findings:
        echo(f"{finding.severity.value}: {finding.observed}. {finding.remedy}", err=True)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if text == before:
        return LockReport(str(path), "nothing changes", observeds)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    state = "written. Review the diff and commit the file."
    return LockReport(str(path), state, observeds, _diff(before, text))


def _registries(plans: list[HostPlan]) -> set[str]:
    return {address for plan in plans for address in plan.settings.registries.values()}


def _check(path: Path, plans: list[HostPlan]) -> LockReport:
    lock = locks.read_lock(path)
    if lock is None:
        return LockReport(str(path), "there is no lock", ["no lock"])
    references = [plan.references for plan in plans]
    again = "run 'sparkwright lock INVENTORY'"
    problems = Problems()
    with problems.collected():
        problems += locks.changed_bases(references, lock, str(path))
        problems += errors(_pickles(plans, lock, str(path)))
    observeds = [finding.observed for finding in problems]
    observeds += [
        f"{name} is a built image, but its context is not pinned: {again}"
        for name in locks.without_contexts(references, lock)
    ]
    observeds += [
        f"registry {address} is not pinned: {again}"
        for address in sorted(_registries(plans) - set(lock.registries or ()))
    ]
    unused = locks.unused(references, lock)
    observeds += [f"{name} is locked, but no host needs it" for name in unused]
    state = "incomplete" if observeds else "complete"
    counts = f"{len(lock.images)} images, {len(lock.models)} models"
    return LockReport(str(path), f"{state}, {counts}", observeds)


def _pickles(plans: list[HostPlan], lock: locks.Lock, file: str) -> list[Finding]:
    """Report the pickles of each model, which are not fetched.

    Raises:
        UserError: an entry is not locked; the message names every such entry.
    """
    references = [plan.references for plan in plans]
    resolution = locks.to_resolution(references, lock, file, bases=False)
    symptoms = (
        pickle_symptom(resolution.model(model), (*plan.settings.allowed_pickles, *model.code))
        for plan in plans
        for model in plan.references.models
    )
    return HOST_CHECKS.report(filter(None, symptoms))


def _diff(before: str, after: str) -> list[str]:
    """Return the diff's lines with pins; the files of new models would hide these lines."""
    pins = r"(digest:|commit:|context:|\S: sha256:[0-9a-f]{64}$)"
    pin = re.compile(rf"[+-](?![+-]{{2}}).*{pins}|[+-]  \S+:($| [0-9a-f]{{40}}$)")
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="")
    return [line for line in lines if pin.match(line)]
