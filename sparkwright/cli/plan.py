"""``sparkwright plan``: the desired state of each host, and the source of every value."""

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click

from sparkwright.catalog import Catalog
from sparkwright.catalog.file_entries import is_code
from sparkwright.catalog.gpus import LEAST_SPARK_GIB, SYSTEM_GIB
from sparkwright.checks.configuration import facts, memory_budget
from sparkwright.checks.configuration.parts import Memory, memory_of
from sparkwright.cli.lib import options, selection
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load_judged
from sparkwright.config.templates import template
from sparkwright.findings.exit_codes import MISTAKEN
from sparkwright.findings.finding import errors
from sparkwright.findings.render import data, paint, text
from sparkwright.plan.plan import ServicePlan
from sparkwright.plan.service import container_command
from sparkwright.plan.terms import terms
from sparkwright.resolve.lock import Lock
from sparkwright.site.fleet import PlannedHost
from sparkwright.site.resolution import locks
from sparkwright.text import screen, sizes, visible

_WIDTH = 48


@click.command("plan")
@selection.names_argument(services=True)
@click.option("--files", is_flag=True, help="Show the files of services in full, including code.")
@options.json_option
def command(hosts: selection.Selection, files: bool, as_json: bool) -> None:
    """Show the desired state of each host.

    The output has resolved settings with their sources, downloads, a memory bar, and at the end
    licences and operators' duties. No host or registry is contacted; the hub is queried only for an
    unlocked model that a service names without a recipe. Exit with 2 if a mistake would stop a run.
    """
    planned_hosts = load_judged(hosts).or_raise()
    by_file = locks(planned_hosts)
    shown = {
        name: (_host(host, by_file[host.plan.settings.lock_file], hosts), host)
        for name, host in planned_hosts.items()
    }
    if as_json:
        options.print_json([data for data, _ in shown.values()])
    else:
        blocks = [
            (names, host_data, _bar(memory_of(host.plan, host.catalog)),
             text(errors(host.violations), hosts=False, indent=2, paint=paint))
            for names, (host_data, host) in screen.folded(shown.items(), _alike)
        ]  # fmt: skip
        services = ((service, host.catalog) for host in planned_hosts.values()
                    for service in host.plan.services)  # fmt: skip
        shown_text = template("plan/plan.txt.j2").render(
            blocks=blocks,
            terms=terms(services),
            style=click.style,
            contents=_contents(planned_hosts.values()) if files else (),
        )
        echo(shown_text.removesuffix("\n"))
    sys.exit(MISTAKEN if any(errors(host.violations) for _, host in shown.values()) else 0)


def _contents(hosts: Iterable[PlannedHost]) -> list[tuple[str, str, str]]:
    """Return title, sha256 and text of every file of services and of their patches.

    Files of equal content share one block. The block is marked as code if any of these files is
    code.
    """
    titles: dict[str, dict[str, bool]] = {}
    contents: dict[str, bytes] = {}
    for service in (service for host in hosts for service in host.plan.services):
        for file in service.files:
            contents[file.sha256] = file.content
            titles.setdefault(file.sha256, {})[f"{file.file.at} ({file.source})"] = file.is_code
        contents |= service.image.steps.files if service.image.steps else ()
        for number, path, name, code in _brought(service):
            title = f"step {number} of recipe {service.recipe.name}: {path}"
            titles.setdefault(name, {})[title] = code
    return [
        (
            f"{', '.join(paths)} ({'CODE' if any(paths.values()) else 'data'})",
            name,
            visible.visible_prose(contents[name].decode("utf-8", "surrogateescape")),
        )
        for name, paths in titles.items()
    ]


def _brought(service: ServicePlan) -> Iterator[tuple[int, str, str, bool]]:
    """Yield step, path and sha256 of each file that patches add, and whether the file is code."""
    steps = service.image.steps
    if steps is None:
        return
    contents, files = dict(steps.files), json.loads(steps.text)
    for number, patch in enumerate(service.recipe.patches, 1):
        for file in patch.files:
            name = files[number - 1]["files"][file.at]
            yield number, file.at, name, is_code((file.at, file.source), contents[name])
        if patch.patch:
            name = files[number - 1]["patch"][patch.patch]["file"]
            yield number, f"{patch.patch} into {patch.into}", name, True


def _alike(pair: tuple[dict[str, Any], PlannedHost]) -> str:
    """Return a key that is equal for hosts whose output differs only in the name."""
    shown, planned = pair
    return repr(({**shown, "host": "", "findings": []}, [f.on(None) for f in planned.violations]))


def _host(host: PlannedHost, lock: Lock | None, chosen: selection.Selection) -> dict[str, Any]:
    services = [
        _service(service, host, lock)
        for service in host.plan.services
        if chosen.means(host.plan.host, service.name)
    ]
    hardware = facts.assumed_hardware(host.plan)
    unified = hardware.unified
    return {
        "host": host.plan.host,
        "models_root": host.plan.settings.models_root,
        "locked": lock is not None,
        "memory": {
            "total_gib": hardware.pool_gib,
            "kind": f"unified, {LEAST_SPARK_GIB:g} GiB assumed" if unified else "of the card",
            "system_gib": SYSTEM_GIB if unified else 0,
            "sidecars_gib": dict(host.plan.settings.sidecars),
        },
        "services": services,
        "findings": data(host.violations),
    }


def _service(service: ServicePlan, host: PlannedHost, lock: Lock | None) -> dict[str, Any]:
    catalog = host.catalog
    own = memory_budget.budgets(host.plan, catalog, facts.assumed_hardware(host.plan))[service.name]
    image = lock.images.get(service.image.name) if lock else None
    command = container_command(service)
    coded = {number for number, _, _, code in _brought(service) if code}
    return {
        "name": service.name,
        "recipe": service.recipe.name,
        "title": service.recipe.title,
        "image": service.image.name,
        "digest": image.digest if image else service.image.digest,
        "image_key": service.image.pulled.key,
        "patches": [
            {**step.model_dump(mode="json", exclude_defaults=True), "code": number in coded}
            for number, step in enumerate(service.recipe.patches, 1)
        ],
        "port": service.port,
        "proxy": service.settings.proxy,
        "served_names": list(service.served_names),
        "derived": [vars(fact) for fact in service.derived],
        "arguments": _values(service, "argument", service.arguments),
        "environment": _values(service, "environment", service.environment),
        "command": command.arguments,
        "container_environment": command.environment,
        "models": [
            {"repository": model.repository, "revision": model.revision,
             "gib": _size(model.name, f"{model.repository}@{model.revision}", catalog, lock)}
            for model in service.models
        ],
        "files": [
            {"at": file.file.at, "source": file.source, "sha256": file.sha256,
             "bytes": len(file.content), "code": file.is_code}
            for file in service.files
        ],
        "adapters": {name: model.repository for name, model in service.adapters.items()},
        "kv_offload": service.kv_offload and service.kv_offload.model_dump(),
        "secrets": [secret.name for secret in service.settings.secrets],
        "licenses": {item.of: item.license for item in terms([(service, catalog)]).licenses},
        "image_gib": catalog.images[service.image.image].size.pull_gib,
        "budget_gib": {
            "share": own.share, "weights": own.weights, "drafter": own.drafter,
            "kv_cache": own.kv, "one_full_context": own.context,
        },
    }  # fmt: skip


def _values(service: ServicePlan, kind: str, values: Iterable[tuple[str, Any]]) -> list[Any]:
    return [
        {"name": key, "value": value, "from": service.origins.get(f"{kind}.{key}")}
        for key, value in values
    ]


def _size(name: str, key: str, catalog: Catalog, lock: Lock | None) -> float | None:
    locked = lock.models.get(key) if lock else None
    if locked:
        return sum(file.size for file in locked.files.values()) / sizes.GIB
    return catalog.models[name].size_gib if name in catalog.models else None


def _bar(memory: Memory) -> str:
    """Draw the host's memory as a bar of ``_WIDTH`` characters."""
    total = memory.total_gib
    if not total:
        return "    memory: unknown until a run contacts the host"
    parts = memory.parts
    bar = "".join(part.mark * round(_WIDTH * part.gib / total) for part in parts)[:_WIDTH]
    kind = f"unified, {LEAST_SPARK_GIB:g} GiB assumed" if memory.unified else "of the card"
    legend = [f"{part.mark} {part.name} {part.gib:{'g' if part.mark == '+' else '.0f'}}"
              for part in parts]  # fmt: skip
    line = f"    memory [{bar:.<{_WIDTH}}] {total:.0f} GiB {kind}"
    return f"{line}\n           {', '.join(legend)}"
