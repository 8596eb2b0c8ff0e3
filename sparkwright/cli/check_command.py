"""``sparkwright check``: every mistake in an inventory or a recipe, without a host."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sparkwright.cli.options import load, print_json, recipe_names
from sparkwright.config.inventory import HostInput
from sparkwright.findings.finding import Severity
from sparkwright.findings.problems import Problem
from sparkwright.rules import Broken
from sparkwright.site.fleet import Fleet, plan_fleet


@click.command("check")
@click.argument("inventory", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option(
    "--recipe",
    shell_complete=recipe_names,
    help="Check one recipe of the catalog instead of an inventory.",
)
@click.option("--tag", help="With --recipe: on this tag of its image.")
@click.option(
    "--data", "overrides", multiple=True, metavar="KEY=VALUE", help="As pyinfra's --data."
)
@click.option("--limit", multiple=True, metavar="HOST", help="Only this host (repeatable).")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    help="sarif is what editors and code scanners read.",
)
def command(
    inventory: Path | None,
    recipe: str | None,
    tag: str | None,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    form: str,
) -> None:
    """Find every known mistake in an inventory, or in one recipe.

    Exit code 1 when anything would stop a run.
    """
    if (inventory is None) == (recipe is None):
        raise click.UsageError("name an inventory, or --recipe")
    if recipe is not None:
        service = {"recipe": recipe, **({"image_tag": tag} if tag else {})}
        data = {"services": {"recipe": service}}
        fleet = plan_fleet([HostInput("any host", data, lambda _: "command line")])
    else:
        assert inventory is not None
        fleet = load(inventory, overrides, limit)
    broken = [one for host in fleet.hosts.values() for one in host.broken]
    {"text": _text, "json": _json, "sarif": _sarif}[form](fleet, broken)
    sys.exit(int(bool(fleet.problems) or any(_stops(one) for one in broken)))


def _stops(one: Broken) -> bool:
    return one.severity is Severity.ERROR and one.silenced is None


def _text(fleet: Fleet, broken: list[Broken]) -> None:
    for problem in fleet.problems:
        _entry("error", problem.host, problem.where, problem.what, "", problem.remedy)
    same: dict[tuple[str, ...], list[str]] = {}
    for one in broken:
        level = "silenced" if one.silenced else str(one.severity)
        what = f"{one.what} [{one.rule}]"
        why = f"you say: {one.silenced}" if one.silenced else f"{one.why} ({one.source})"
        same.setdefault((level, f"{one.origin}: {one.key}", what, why, one.instead), []).append(
            one.host
        )
    for (level, where, what, why, instead), hosts in same.items():
        _entry(level, ", ".join(hosts), where, what, why, instead)
    stops = len(fleet.problems) + sum(_stops(one) for one in broken)
    warnings = sum(one.severity is Severity.WARNING and not one.silenced for one in broken)
    silenced = sum(one.silenced is not None for one in broken)
    services = sum(len(host.plan.services) for host in fleet.hosts.values())
    click.echo(
        f"{_count(len(fleet.hosts), 'host')}, {_count(services, 'service')}: "
        f"{_count(stops, 'error')}, {_count(warnings, 'warning')}, {silenced} silenced"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _entry(level: str, host: str | None, where: str, what: str, why: str, instead: str) -> None:
    colour = {"error": "red", "warning": "yellow"}.get(level, "cyan")
    click.echo(f"{click.style(level, fg=colour)}: {f'{host}: ' if host else ''}{where}")
    click.echo(f"    {what}")
    if why:
        click.echo(f"    why: {why}")
    click.echo(f"    -> {instead}")


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "severity": "error", "rule": "input", "host": problem.host, "where": problem.where,
        "what": problem.what, "instead": problem.remedy,
    }  # fmt: skip


def _broken(one: Broken) -> dict[str, Any]:
    return {
        "severity": str(one.severity), "rule": one.rule, "host": one.host,
        "where": f"{one.origin}: {one.key}", "what": one.what, "why": one.why,
        "source": one.source, "instead": one.instead, "silenced": one.silenced,
    }  # fmt: skip


def _json(fleet: Fleet, broken: list[Broken]) -> None:
    print_json([*map(_problem, fleet.problems), *map(_broken, broken)])


def _sarif(fleet: Fleet, broken: list[Broken]) -> None:
    entries = [*map(_problem, fleet.problems), *map(_broken, broken)]
    results = []
    for entry in entries:
        file = str(entry["where"]).partition(":")[0]
        result: dict[str, Any] = {
            "ruleId": entry["rule"],
            "level": entry["severity"],
            "message": {
                "text": f"{entry['where']}: {entry['what']}. {entry.get('why', '')} "
                f"Instead: {entry['instead']}"
            },
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": file}}}],
        }
        if entry.get("silenced"):
            result["suppressions"] = [{"kind": "external", "justification": entry["silenced"]}]
        results.append(result)
    rules = [{"id": name} for name in sorted({str(entry["rule"]) for entry in entries})]
    print_json(
        {
            "version": "2.1.0",
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "runs": [
                {"tool": {"driver": {"name": "sparkwright", "rules": rules}}, "results": results}
            ],
        }
    )
