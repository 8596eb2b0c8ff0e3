"""The plan of all hosts together: settings, catalogs, plans and rules; every problem at once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sparkwright.catalog import Catalog, load_catalog
from sparkwright.checks.configuration import check_host, unknown_silences
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.config import places
from sparkwright.config.inventory import HostInput, lan_address
from sparkwright.config.parse import parse_settings
from sparkwright.config.settings import is_loopback
from sparkwright.config.ssh_keys import SSH_KEY, unusable_key
from sparkwright.findings.finding import Finding, errors
from sparkwright.findings.user_error import Problems
from sparkwright.plan.plan import HostPlan, plan_host, taken
from sparkwright.resolve.hub import ResolvedModel
from sparkwright.resolve.lock import read_lock
from sparkwright.site.files import with_files
from sparkwright.site.own_models import ReadHost, named_gpu, with_recipes
from sparkwright.tls.host_certificates import problems as tls_problems


@dataclass(frozen=True)
class PlannedHost:
    """A host's plan, and the catalog that the plan was made with.

    Attributes:
        resolved_models: models that were asked for to make the plan, by repository and revision.
        login: what prevents logging in there.
        data: of inventory and group_data.
    """

    plan: HostPlan
    catalog: Catalog
    resolved_models: Mapping[str, ResolvedModel] = field(default_factory=dict)
    login: tuple[Finding, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Address at which other hosts reach it."""
        return lan_address(self.plan.host, self.data)

    @cached_property
    def violations(self) -> tuple[Finding, ...]:
        """The rules that it violates."""
        return (*check_host(self.plan, self.catalog, assumed_hardware(self.plan)), *self.login)


@dataclass(frozen=True)
class Fleet:
    """Planned hosts by name, and everything that prevents planning the others."""

    hosts: dict[str, PlannedHost]
    problems: tuple[Finding, ...]

    def or_raise(self) -> dict[str, PlannedHost]:
        """The hosts, when nothing is wrong with any."""
        Problems(self.problems).stop()
        return self.hosts


def stopping(planned: Mapping[str, PlannedHost]) -> list[Finding]:
    """Violated rules that end a run, since nobody has silenced them; what prevents one host's login
    fails that host alone."""
    result = errors(finding for host in planned.values() for finding in host.violations)
    return [finding for finding in result if finding.id != SSH_KEY]


def plan_fleet(inputs: Iterable[HostInput], *, anew: bool = False) -> Fleet:
    """Plan every host; a problem of one does not hide those of another.

    Args:
        anew: whether the hub is asked for models that services name, although the lock says them.
    """
    read: list[ReadHost] = []
    problems = Problems()
    catalogs: dict[tuple[str, ...], Catalog] = {}
    for host in inputs:
        with problems.collected():
            settings = parse_settings(host.name, host.data, host.origin)
            directories = settings.catalog_directories
            if directories not in catalogs:
                catalogs[directories] = load_catalog(places.catalogs(directories))
            read.append(ReadHost(host, settings, catalogs[directories]))
    hosts: dict[str, PlannedHost] = {}
    for recipe in with_recipes(read, problems, anew=anew):
        given = recipe.given
        with problems.collected():
            plan = plan_host(
                given.name, recipe.settings, recipe.catalog, given.origin, recipe.derivations
            )
            file = Path(recipe.settings.lock_file)
            lock = None if anew else partial(read_lock, file)
            plan = with_files(plan, recipe.catalog, given.origin, lock)
            plan = replace(plan, locked=file.is_file(), gpu=named_gpu(given, recipe.settings))
            problems += taken(plan, given.origin, given.data.get("ssh_port"))
            problems += _of_the_whole(recipe, plan)
            login = tuple(unusable_key(given.name, given.data, given.origin))
            hosts[given.name] = PlannedHost(
                plan, recipe.catalog, recipe.resolved_models, login, given.data
            )
    return Fleet(hosts, tuple(dict.fromkeys(problems)))


def _of_the_whole(host: ReadHost, plan: HostPlan) -> Iterator[Finding]:
    """TLS over all services of a host, and names of rules that there are not."""
    given, settings = host.given, host.settings
    in_clear = [
        service.name
        for service in plan.services
        if not service.proxy and not is_loopback(service.bind)
    ]
    where = f"{given.origin('tls')}: tls"
    yield from tls_problems(given.name, given.data, settings.tls, in_clear, where)
    yield from unknown_silences(plan, host.catalog, given.origin("services"))
