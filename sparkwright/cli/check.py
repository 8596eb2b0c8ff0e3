"""``sparkwright check``: every mistake in an inventory or a recipe, without a host."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click

from sparkwright.catalog import load_catalog
from sparkwright.cli.lib import explain as explanation
from sparkwright.cli.lib.completion import recipes, tags
from sparkwright.cli.lib.options import json_option, option, print_findings
from sparkwright.cli.lib.planned import load_judged
from sparkwright.cli.lib.selection import Selection, names_argument
from sparkwright.config import places
from sparkwright.config.inventory import HostInput, overrides_by_key, read_inventory, site_inventory
from sparkwright.findings import exit_codes, user_error
from sparkwright.findings.finding import errors
from sparkwright.findings.render import count, counts, paint, text
from sparkwright.site.fleet import plan_fleet


@click.command("check")
@names_argument()
@option("check --recipe", shell_complete=recipes)
@option("check --tag", shell_complete=tags)
@option("explain")
@json_option
def command(
    hosts: Selection, recipe: str | None, tag: str | None, explain: str | None, as_json: bool
) -> None:
    """Find every known mistake in an inventory, or in one recipe.

    The exit code is 2 if a mistake would stop a run, as in every command.
    """
    if explain is not None:
        explanation.explain(explain, as_json=as_json)
        sys.exit()
    if recipe is not None and (hosts.file or hosts.limit):
        raise click.UsageError("name an inventory or --recipe, not both")
    if recipe is not None:
        service = {"recipe": recipe, **({"image_tag": tag} if tag else {})}
        data = {"catalog_directories": _own_catalogs(), "services": {"recipe": service}}
        data |= overrides_by_key(hosts.overrides)
        data |= _needed(recipe, data)
        fleet = plan_fleet([HostInput("any host", data, lambda _: "command line")])
    else:
        fleet = load_judged(hosts)
    planned = fleet.hosts.values()
    findings = [*fleet.problems, *(finding for host in planned for finding in host.violations)]
    services = sum(len(host.plan.services) for host in planned)
    checked = f"{count(len(planned), 'host')}, {count(services, 'service')}"
    silenced = sum(finding.silenced is not None for finding in findings)
    summary = f"{checked}: {counts(findings)}, {silenced} silenced"
    lines = "\n".join(filter(None, [text(findings, paint=paint), summary]))
    print_findings(findings, lines, as_json=as_json)
    sys.exit(exit_codes.MISTAKEN if errors(findings) else 0)


def _needed(recipe: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return sources for a recipe's secrets, and a cluster for a recipe that runs on several hosts.
    Mistakes in the catalog are reported later.
    """
    with suppress(user_error.UserError, KeyError):
        recipes_of_site = load_catalog(places.catalogs(tuple(data["catalog_directories"]))).recipes
        ranks, secrets = recipes_of_site[recipe].ranks, recipes_of_site[recipe].secrets
        sources = [{"name": name, "variable": "ANY"} for name in secrets]
        service = data["services"]["recipe"] | {"secrets": sources}
        if ranks and ranks.world > 1:
            hosts = ["any host", *(f"host {number}" for number in range(2, ranks.world + 1))]
            services = {"recipe": {**service, "cluster": "any"}}
            return {"clusters": {"any": {"hosts": hosts}}, "services": services}
        return {"services": {"recipe": service}}
    return {}


def _own_catalogs() -> list[str]:
    """Return the catalogs that the site's inventory adds to the shipped catalog, if any."""
    try:
        hosts = read_inventory(site_inventory())
    except user_error.UserError:
        return []
    named = (host.data.get("catalog_directories") or () for host in hosts)
    return list(dict.fromkeys(directory for item in named for directory in item))
