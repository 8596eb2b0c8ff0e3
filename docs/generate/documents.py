"""Types of the documents that commands print with --json.

docs/json.md is generated from these types, and a test compares the commands' output with the types.
"""

from importlib import import_module
from typing import Any

from typing_extensions import TypedDict

from sparkwright.catalog.advice import Choice
from sparkwright.checks.smoke.verdict import DeepVerdict
from sparkwright.cli.lib.extras import all_commands
from sparkwright.cli.lock import LockReport
from sparkwright.engines.derivation import DerivedFact
from sparkwright.findings.finding import Finding
from sparkwright.host.control import ControlAnswer
from sparkwright.host.disk_usage import DiskUsage
from sparkwright.host.exclusive.activate import ActivateAnswer
from sparkwright.host.lib.docker import Container
from sparkwright.host.lib.homes import Action, Maintenance, Stopped
from sparkwright.host.lib.http import Health
from sparkwright.host.lock import Owner
from sparkwright.host.models.report import UsageRow
from sparkwright.host.release import HistoryEntry, SwitchJournal
from sparkwright.host.removal import RemovalAnswer
from sparkwright.host.watch.state import WatchReport
from sparkwright.results.key_states import KeyRow


class Advised(Choice):
    """A recipe for a workload; ``spread`` is ``ranks`` or ``replicas`` with several ``--hosts``."""

    spark_only: bool
    spread: str | None
    figures: list[str]


class Value(TypedDict("Value", {"from": str | None})):
    """An argument of vLLM or a variable, and its source file."""

    name: str
    value: Any


class PlannedModel(TypedDict):
    """A model that a service needs; ``gib`` is null if its size is not known."""

    repository: str
    revision: str
    gib: float | None


class Budget(TypedDict):
    """Memory of a service, in GiB; null until the host was observed."""

    share: float | None
    weights: float | None
    drafter: float | None
    kv_cache: float | None
    one_full_context: float | None


class PlannedFile(TypedDict):
    """A file that the container reads; ``code`` marks a file that the engine may run."""

    at: str
    source: str
    sha256: str
    bytes: int
    code: bool


class PlannedService(TypedDict):
    """Plan of a service."""

    name: str
    recipe: str
    title: str
    image: str
    digest: str | None
    image_key: str | None
    patches: list[dict[str, Any]]
    port: int
    proxy: bool
    served_names: list[str]
    derived: list[DerivedFact]
    arguments: list[Value]
    environment: list[Value]
    command: list[str]
    container_environment: dict[str, str]
    models: list[PlannedModel]
    files: list[PlannedFile]
    adapters: dict[str, str]
    kv_offload: dict[str, Any] | None
    secrets: list[str]
    licenses: dict[str, str]
    image_gib: float | None
    budget_gib: Budget


class HostMemory(TypedDict):
    """Memory of a host, in GiB."""

    total_gib: float | None
    kind: str
    system_gib: float
    sidecars_gib: dict[str, float]


class PlannedHost(TypedDict):
    """Plan of a host, and its findings."""

    host: str
    models_root: str
    locked: bool
    memory: HostMemory
    services: list[PlannedService]
    findings: list[Finding]


class ChangedKey(TypedDict):
    """A key that was rotated, retired or revoked, and the hosts whose state is uncertain."""

    name: str
    state: str
    missing: list[str]


class NewSite(TypedDict):
    """A new site, and hosts without a fitting recipe."""

    folder: str
    files: list[str]
    without_recipe: list[str]


class Certificate(TypedDict):
    """The certificate of the site's CA, in PEM, and its fingerprint."""

    certificate: str
    sha256: str


class Bundle(TypedDict):
    """A directory for a site without internet, and its missing parts."""

    directory: str
    bytes: int
    missing: list[str]


class Difference(TypedDict):
    """Changes that a deploy would make to the files of a host's services, as unified diffs."""

    host: str
    text: str


class Controlled(TypedDict):
    """Answers of hosts, by name, and hosts that did not answer."""

    hosts: dict[str, ControlAnswer]
    silent: list[str]


class InMaintenance(TypedDict):
    """Result of maintenance on a host; ``now`` is null unless the host is in maintenance."""

    host: str
    now: Maintenance | None
    done: list[str]
    left: list[str]
    faults: list[str]


class Activation(TypedDict):
    """Result of a switch on each host, and hosts that did not answer."""

    hosts: dict[str, ActivateAnswer]
    silent: list[str]


class ReleaseSummary(TypedDict):
    """A release that a host keeps; ``tag`` is null if its record can't be read."""

    at: float
    tag: str | None


class ServiceSummary(TypedDict):
    """A service on a host.

    Attributes:
        current, good: the release that must run, and the last release that gave real answers.
        unit: systemd's properties.
        health: null if the port is unknown.
        stopped: record of the last stop; the service may have been started since then.
    """

    current: str | None
    good: str | None
    releases: dict[str, ReleaseSummary]
    container: Container | None
    unit: dict[str, str]
    health: Health | None
    stopped: Stopped | None


class PlannedRelease(TypedDict):
    """Planned release of a service, and differences of the running release.

    Attributes:
        url: address for clients; empty for a follower, whose head answers.
    """

    release: str
    tag: str
    drift: list[str]
    url: str
    served_names: list[str]


class HostSummary(TypedDict):
    """Running services of a host, and its plan. ``history --json`` lists the host's switches.

    Attributes:
        now: the host's clock, seconds since the epoch.
        lock: owner of the host's lock.
        watch: null without a watch.
        maintenance: null unless a user has taken the host out of every pool.
        sleeping: exclusive services that sleep -> the running service of their group.
        plan_known: false if the plan is broken; differences from the plan are then unknown.
        refused: ids of preflight's errors, which make a deploy skip a host with differences.
    """

    now: float
    lock: Owner | None
    switch: SwitchJournal | None
    services: dict[str, ServiceSummary]
    watch: WatchReport | None
    maintenance: Maintenance | None
    sleeping: dict[str, str]
    planned: dict[str, PlannedRelease]
    plan_known: bool
    refused: list[str]


#: Core command -> type of its document. Commands in ``PYINFRAS`` print pyinfra's own document.
DOCUMENTS: dict[str, Any] = {
    "activate": Activation,
    "advise": list[Advised],
    "bundle": Bundle,
    "ca": Certificate,
    "catalog list": dict[str, list[str]],
    "catalog new": list[str],
    "catalog schema": dict[str, Any],
    "catalog show": dict[str, Any],
    "check": list[Finding],
    "diff": list[Difference],
    "doctor": list[Finding],
    "history": dict[str, list[HistoryEntry | Action]],
    "init": NewSite,
    "key list": list[KeyRow],
    "key retire": ChangedKey,
    "key revoke": ChangedKey,
    "key rotate": ChangedKey,
    "lock": list[LockReport],
    "maintenance": InMaintenance,
    "models list": dict[str, DiskUsage],
    "models prune": dict[str, DiskUsage],
    "plan": list[PlannedHost],
    "remove": dict[str, RemovalAnswer],
    "restart": Controlled,
    "smoke": list[DeepVerdict],
    "start": Controlled,
    "status": dict[str, HostSummary],
    "stop": Controlled,
    "usage": list[UsageRow],
}
#: Commands that run pyinfra.
PYINFRAS = ("bootstrap", "deploy", "fabric addresses", "rollback", "verify")


def documents() -> dict[str, Any]:
    """Command -> type of its document: ``DOCUMENTS``, and ``DOCUMENT`` of a command's module."""
    modules = {
        name: import_module(command.module.partition(":")[0])
        for name, command in all_commands().items()
    }
    declared = {name: each.DOCUMENT for name, each in modules.items() if hasattr(each, "DOCUMENT")}
    return {**DOCUMENTS, **declared}
