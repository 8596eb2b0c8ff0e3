"""State of a run over a site: the desired state of each host, and the outcomes so far.

The run is attached to pyinfra's host objects, so two runs in one process are independent.
Operations don't use this module; the site's roles pass the plan to operations as arguments.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce, wraps

import click
from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.checks.configuration.memory_budget import budgets
from sparkwright.checks.service.watch_plan import Watch, watch_of
from sparkwright.checks.smoke.result import Smoke
from sparkwright.config.settings import HostSettings, RolloutSettings
from sparkwright.facts import hooks, observation
from sparkwright.facts.memory import HostMemory, memory
from sparkwright.findings.finding import Finding
from sparkwright.host import observe, service
from sparkwright.host.lib.homes import Maintenance
from sparkwright.host.proof import ModelAt
from sparkwright.operations import address, exclusive, proxies, services, watch
from sparkwright.operations.lib import locks
from sparkwright.plan import lan
from sparkwright.plan.lan import at
from sparkwright.plan.peer_keys import RunKeys
from sparkwright.plan.rollout import Rollout
from sparkwright.proxy.haproxy import Proxies
from sparkwright.resolve.references import hex_digits
from sparkwright.results.run_summary import Outcome
from sparkwright.site.desired import DesiredHost
from sparkwright.text.marks import in_maintenance
from sparkwright.text.visible import visible

_KEY = "sparkwright-run"


@dataclass
class HostRun(DesiredHost):
    """State of a host in this run.

    Attributes:
        address: the host's address for clients.
        findings: findings of preflight.
        outcomes: name of a service -> the running release, if it differs from the plan.
        connection: addresses of the controller and the host, if both are directly connected.
        left: reason why this run skips the host although it has no fault; None for other hosts.
        plan_known: False in a run without a plan: services are read from the host.
        cured: ids of preflight's findings that bootstrap fixes first; None if bootstrap was not
            called.
    """

    name: str
    memory: HostMemory
    address: str
    connection: tuple[str, str] | None = None
    left: str | None = None
    cured: frozenset[str] | None = None
    plan_known: bool = True
    findings: list[Finding] = field(default_factory=list)
    smoke: dict[str, Smoke] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    @property
    def settings(self) -> HostSettings:
        """The host's settings."""
        return self.desired.plan.settings

    @property
    def observed(self) -> observe.Observation:
        """The host's observation, for code that runs after preflight only."""
        assert self.memory.observation is not None, "a role ran before preflight"
        return self.memory.observation

    def __post_init__(self) -> None:
        self.planned_proxies = self.proxies

    def reached(self, proxies: Proxies | None) -> None:
        """Replace the planned proxies with proxies that have the replicas' observed addresses."""
        if proxies != self.proxies:
            self.proxies = proxies
            for name in ("proxy_files", "request"):
                self.__dict__.pop(name, None)

    @property
    def services(self) -> tuple[service.Service, ...]:
        """Desired services of the host."""
        return self.desired.services

    @cached_property
    def watch(self) -> Watch | None:
        """The host's watch; None if its settings turn the watch off."""
        return watch_of(self.desired.plan, self.services)

    @cached_property
    def exclusive_files(self) -> dict[str, tuple[str, int]]:
        """Files that the host needs for its exclusive services: text and mode, by path."""
        plan = self.desired.plan
        if not plan.groups:
            return {}
        every = budgets(plan, self.desired.catalog, assumed_hardware(plan)).items()
        needs = {name: own.share for name, own in every if own.share}
        return exclusive.files_of(self.services, self.settings, needs)

    @cached_property
    def address_files(self) -> dict[str, tuple[str, int]]:
        """Files that the host's address for all models needs: text and mode, by path."""
        if self.proxies is None:
            return {}
        root = self.settings.services_root
        return address.files_of(self.proxies.address, root) | address.page_files(
            self.proxies.page, root
        )

    @cached_property
    def proxy_files(self) -> dict[str, tuple[str, int]]:
        """Every file of the host's proxies: text and mode, by path."""
        return proxies.files_of(self.proxies, self.keys, self.desired.plan)

    @cached_property
    def request(self) -> observe.ObservationRequest:
        """Request for the host's whole observation."""
        parts = (
            services.request_of(self.services, self.settings.services_root),
            proxies.request_of(self.proxies, self.proxy_files),
            watch.request_of(watch.files_of(self.watch)),
            address.request_of(self.address_files, self.settings.services_root),
            exclusive.request_of(self.exclusive_files, self.settings.services_root),
            observe.ObservationRequest(
                directories=tuple(directory.path for directory in self.directories),
                images=tuple(image.name for image in self.desired.images),
                models=tuple(
                    ModelAt(model.directory, model.resolved.commit) for model in self.desired.models
                ),
                stores={
                    image.store: hex_digits(image.resolved.digest) for image in self.desired.images
                },
                http_proxy=(self.settings.http_proxy,) if self.settings.http_proxy else (),
            ),
        )
        roots = observe.ObservationRequest(self.settings.models_root, self.settings.services_root)
        return reduce(observation.joined, parts, roots)

    @property
    def lan_addresses(self) -> tuple[str, ...]:
        """IP addresses at which other hosts reach the host, IPv4 first; none behind a jump host."""
        came = self.connection[1] if self.connection else None
        seen = self.memory.observation.addresses if self.memory.observation else {}
        return lan.addresses(self.settings.lan_address, came, seen)

    @property
    def peer_address(self) -> str | None:
        """Address at which other hosts fetch models and images; None behind a jump host."""
        scheme = "https" if self.peer_certificate else "http"
        for own in self.lan_addresses:
            return f"{scheme}://{at(own, self.settings.peer_port)}"
        return None


@dataclass
class Run:
    """All hosts of this run.

    Attributes:
        peer_keys: keys with which hosts authenticate to each other when they share files.
        dry: whether this run changes nothing.
        everyone: names of all hosts of the inventory.
        takes_from: content -> host -> hosts that serve the content to this host; None until
            decided.
        broken: the plan's mistake, in one line; the run then has no plan, and uses the state stored
            on the hosts. None if the plan is valid.
    """

    inventory: str
    hosts: dict[str, HostRun]
    peer_keys: RunKeys
    rollout: Rollout
    rollout_settings: RolloutSettings
    dry: bool
    broken: str | None = None
    takes_from: dict[str, dict[str, list[str]]] | None = None
    everyone: frozenset[str] = frozenset()
    started: float = field(default_factory=time.monotonic)

    def live(self) -> Iterator[HostRun]:
        """Yield observed hosts that are neither failed nor skipped, in the inventory's order."""
        for host in self.hosts.values():
            seen, failure = host.memory.observation, host.memory.failure
            if seen is not None and failure is None and host.left is None:
                yield host


def attach(run: Run, hosts: dict[str, Host]) -> None:
    """Attach the run to its hosts."""
    for host in hosts.values():
        host.connector_data[_KEY] = run
        host_memory, settings = memory(host), run.hosts[host.name].settings
        host_memory.services_root = settings.services_root
        host_memory.models_root = settings.models_root
        host_memory.break_lock = settings.break_lock
        # Roles of the user make changes under the same lock.
        host_memory.guard = partial(locks.take, host)


def run_of(host: Host) -> Run:
    """Return the run of a host."""
    run = host.connector_data.get(_KEY)
    if not isinstance(run, Run):
        raise RuntimeError(
            "this site's config.py was not read: run pyinfra in the site's folder, and let "
            "config.py call sparkwright.run.site.install()"
        )
    return run


def host_run(host: Host) -> HostRun | None:
    """Return a host's part of the run; None once the host has failed or was refused."""
    run = run_of(host)
    return run.hosts[host.name] if host in host.state.active_hosts else None


def role(function: Callable[[Host, HostRun], None]) -> Callable[[], None]:
    """Make a function a role, which skips failed and refused hosts."""

    @wraps(function)
    def called() -> None:
        host = ctx_host.get()
        if (run := host_run(host)) is not None:
            function(host, run)

    return called


def refuse(host: Host, reason: str) -> None:
    """Exclude a host from the run, and report the reason."""
    memory(host).failure = reason
    for line in f"{reason}: this host stays unchanged".splitlines():
        host.log(click.style(visible(line), fg="red"))
    hooks.leave_out(host)


def set_aside(host: Host, mark: Maintenance | None, now: float) -> bool:
    """Exclude a host in maintenance from the run, without a failure.

    Returns whether the host was excluded.

    Args:
        now: the host's clock, seconds since the epoch.
    """
    if mark is None:
        return False
    item = run_of(host).hosts[host.name]
    item.left = in_maintenance(mark, now)
    host.log(click.style(f"{item.left}: this run skips the host", fg="yellow"))
    hooks.set_aside(host)
    return True
