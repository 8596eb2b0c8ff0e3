"""The plan of all hosts together: settings, catalogs, plans and rules; every problem at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sparkwright.catalog import Catalog, load_catalog
from sparkwright.checks.configuration import assumed_hardware, check_host, unknown_silences
from sparkwright.config import places
from sparkwright.config.inventory import HostInput
from sparkwright.config.parse import parse_settings
from sparkwright.config.ports import taken_ports
from sparkwright.config.ssh_keys import SSH_KEY, unusable_key
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.plan.plan import HostPlan, Pins, plan_host
from sparkwright.resolve.hub import ResolvedModel
from sparkwright.resolve.resolution import Resolution
from sparkwright.site.own_models import ReadHost, with_recipes
from sparkwright.tls.host import problems as tls_problems


@dataclass(frozen=True)
class PlannedHost:
    """One host: its plan, the catalog it was made with, and the rules that it violates.

    Attributes:
        known: models that were asked for to make the plan: by hub, repository and revision.
    """

    plan: HostPlan
    catalog: Catalog
    violations: tuple[Finding, ...]
    known: Mapping[tuple[str, str, str], ResolvedModel] = field(default_factory=dict)


@dataclass(frozen=True)
class Fleet:
    """Planned hosts by name, and everything that prevents planning the others."""

    hosts: dict[str, PlannedHost]
    problems: tuple[Finding, ...]

    def or_raise(self, more: Iterable[Finding] = ()) -> dict[str, PlannedHost]:
        """The hosts, when nothing is wrong with any."""
        problems = [*self.problems, *more]
        if problems:
            raise UserError(problems)
        return self.hosts


def with_geometry(hosts: dict[str, PlannedHost], resolution: Resolution) -> dict[str, PlannedHost]:
    """The hosts once more, judged by what the models' own files are: the KV cache that their
    configurations say, and the Python files among them."""
    found = {}
    for name, host in hosts.items():
        resolved = {
            reference.name: resolution.model(host.plan.settings.hub_endpoint, reference)
            for service in host.plan.services
            for reference in service.models
        }
        kv = {key: model.kv for key, model in resolved.items() if model.kv}
        python = {key: model.python_files for key, model in resolved.items()}
        plan = replace(host.plan, pins=replace(host.plan.pins, python=python))
        models = {
            key: model.model_copy(update={"kv": kv[key]}) if key in kv else model
            for key, model in host.catalog.models.items()
        }
        catalog = host.catalog.model_copy(update={"models": models})
        violations = check_host(plan, catalog, assumed_hardware(plan))
        login = (one for one in host.violations if one.id == SSH_KEY)
        found[name] = replace(host, plan=plan, catalog=catalog, violations=(*violations, *login))
    return found


def plan_fleet(inputs: Iterable[HostInput], *, anew: bool = False) -> Fleet:
    """Plan every host; a problem of one does not hide those of another.

    Args:
        anew: whether the hub is asked for models that services name, although the lock says them.
    """
    hosts: dict[str, PlannedHost] = {}
    read: list[ReadHost] = []
    problems: list[Finding] = []
    catalogs: dict[tuple[str, ...], Catalog] = {}
    for host in inputs:
        try:
            settings = parse_settings(host.name, host.data, host.origin)
            directories = settings.catalog_directories
            if directories not in catalogs:
                catalogs[directories] = load_catalog(places.catalogs(directories))
        except UserError as error:
            problems.extend(error.findings)
            continue
        read.append(ReadHost(host, settings, catalogs[directories]))
    whole, unclear = with_recipes(read, anew=anew)
    problems.extend(unclear)
    for one in whole:
        host, settings, catalog = one.given, one.settings, one.catalog
        try:
            plan = plan_host(host.name, settings, catalog, host.origin, one.derivations)
            plan = replace(plan, pins=Pins(locked=Path(settings.lock_file).is_file()))
            problems.extend(
                mistake(f"{host.origin(top)}: {top}.{key}", what, remedy, host.name)
                for top, key, what, remedy in taken_ports(settings, host.data)
            )
        except UserError as error:
            problems.extend(error.findings)
            continue
        in_clear = [
            service.name
            for service in plan.services
            if not service.proxy and service.bind not in ("127.0.0.1", "::1", "localhost")
        ]
        where = f"{host.origin('tls')}: tls"
        problems.extend(tls_problems(host.name, host.data, settings.tls, in_clear, where))
        problems.extend(unknown_silences(plan, catalog, host.origin("services")))
        violations = (
            *check_host(plan, catalog, assumed_hardware(plan)),
            *unusable_key(host.name, host.data, host.origin),
        )
        hosts[host.name] = PlannedHost(plan, catalog, violations, one.known)
    return Fleet(hosts, tuple(dict.fromkeys(problems)))
