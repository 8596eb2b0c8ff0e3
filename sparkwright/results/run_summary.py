"""The table at the end of a run: hosts, services, addresses, images, and the proof."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkwright.checks.smoke.result import Smoke
from sparkwright.findings.finding import Finding
from sparkwright.findings.render import count
from sparkwright.host.lib.records import dataclass, encode, field
from sparkwright.text.screen import fitted
from sparkwright.text.shipped_yaml import beside
from sparkwright.text.table import columns
from sparkwright.text.visible import paragraph, visible

#: States of services on untouched hosts, about which the summary makes no claim.
UNTOUCHED = ("left alone", "maintenance")


@dataclass(frozen=True)
class ServiceRow:
    """A service in the summary of a run.

    Attributes:
        address: ``host:port`` for clients, and scheme: ``http`` or ``https``.
        ca: file on the controller that verifies https; None for public CAs.
        image: reference by digest.
        models: repository -> commit.
        smoke: result of the smoke test; None if the run did not reach the test.
        outcome: difference between the host's release and the plan: ``reverted``, ``left``, ``taken
            back`` or ``failed``; then ``release`` and ``image`` are the running release and image.
        head: the host that answers, if another host of the cluster answers for the service.
        routes: kinds of requests that the service answers, each with its route.
    """

    name: str
    address: str
    served_names: tuple[str, ...]
    tag: str
    image: str
    models: Mapping[str, str]
    release: str
    smoke: Smoke | None
    outcome: str | None = None
    scheme: str = "http"
    ca: str | None = None
    head: str | None = None
    routes: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Address for clients, without a path."""
        return f"{self.scheme}://{self.address}"


@dataclass(frozen=True)
class Row:
    """A host in the summary of a run.

    Attributes:
        refused: why the host was refused or failed; None after a success.
        left: reason why the run skipped the host without a fault: maintenance.
        changes: the host's changes in this run.
        pending: changes that a dry run would make.
        executions: number of remote executions of the run.
        gpu, driver: GPU and driver in the host's nvidia-smi; None without a report.
    """

    host: str
    services: tuple[ServiceRow, ...]
    refused: str | None
    findings: tuple[Finding, ...]
    changes: tuple[str, ...]
    executions: int
    gpu: str | None = None
    driver: str | None = None
    left: str | None = None
    pending: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Return whether the run observed the host; false if the user declined the host."""
        results = (service.smoke or service.outcome for service in self.services)
        return bool(self.refused or self.left or self.changes or any(results)) or not self.services


@dataclass(frozen=True)
class Outcome:
    """State of a service at the end of a run, if it is not the planned state.

    Attributes:
        state: ``reverted``, ``left``, ``taken back``, ``failed``, or ``sleeps``: another service of
            its exclusive group runs.
        release: the service's running release; None if unknown.
        image: the service's running image; None if unknown.
        smoke: result of the smoke test.
    """

    state: str
    release: str | None
    image: str | None
    smoke: Smoke | None = None


def render(rows: Sequence[Row], *, dry: bool, seconds: float, keys: Mapping[str, str]) -> str:
    """Render the whole report as text.

    Args:
        keys: host -> shell expression of the host's API key.
    """
    each = [(row, service) for row in rows for service in row.services]
    table: list[Sequence[str]] = [
        ("HOST", "SERVICE", "STATE", "ADDRESS", "SMOKE", "RELEASE", "IMAGE")
    ]
    table += [(row.host, service.name, *_cells(service, state(row, service, dry)))
              for row, service in each]  # fmt: skip
    touched = (service for row, service in each if state(row, service, dry) not in UNTOUCHED)
    details = [_models(service) for service in touched]
    details += [f"{row.host}: {paragraph(row.left)}: left alone" for row in rows if row.left]
    details += [f"{row.host}: {paragraph(row.refused)}" for row in rows if row.refused]
    changes = sum(len(row.pending if dry else row.changes) for row in rows)
    counted = f"{count(changes, 'change')}{' would be made' if dry else ''}"
    executions = ", ".join(f"{row.host} {row.executions}" for row in rows)
    details.append(f"{counted}, {seconds:.1f} s, remote executions: {executions}")
    lines = ["", *columns(table), "", *(fitted(f"  {line}") for line in dict.fromkeys(details))]
    proved = [(row.host, service) for row, service in each
              if service.smoke and not service.smoke.failures and service.head is None]  # fmt: skip
    for host, service in proved[:1]:
        lines += ["", "Example request:", f"  {_curl(service, keys[host])}"]
    if failed := [row for row in rows if row.refused]:
        # If only one host failed, the report's last line has the reason.
        first = visible((failed[0].refused or "").partition("\n")[0])
        reason = f": {first}" if len(failed) == 1 else ""
        hosts = ", ".join(row.host for row in failed)
        lines += ["", fitted(f"NOT as planned: {hosts}{reason}")]
    return "\n".join([*lines, ""])


def _cells(service: ServiceRow, state: str) -> tuple[str, ...]:
    if state in UNTOUCHED:
        return (state, "-", "-", "-", "-")
    smoke = service.smoke
    return (
        state,
        f"with {service.head}" if service.head else f"{service.url}/v1",
        f"{smoke.passed}/{smoke.total} in {smoke.seconds:.1f} s" if smoke else "-",
        service.release,
        f"{service.tag} {image_in_short(service.image)}".strip(),
    )


def _models(service: ServiceRow) -> str:
    models = ", ".join(f"{name}@{commit[:12]}" for name, commit in service.models.items())
    return ", ".join(service.served_names) + (f" from {models}" if models else "")


def as_json(rows: Sequence[Row], *, dry: bool, others: Sequence[object] = ()) -> str:
    """Return the report as JSON: ``{"dry": bool, "hosts": [...]}``, one object per ``Row``.

    Args:
        others: objects of hosts outside the run.
    """
    hosts = [*others, *(encode(row) for row in rows)]
    return json.dumps({"dry": dry, "hosts": hosts}, indent=1) + "\n"


def state(row: Row, service: ServiceRow, dry: bool) -> str:
    """Return the state of a service after the run, in a word or two."""
    if service.outcome:
        return service.outcome
    if row.left:
        return "maintenance"
    if row.refused:
        # A summary makes no claim about an untouched host.
        return "failed" if service.smoke is not None or row.changes else "left alone"
    if dry:
        return "planned"
    if service.smoke is None:
        return "unknown"
    return "serving, changed" if row.changes else "serving"


def image_in_short(image: str) -> str:
    """Return a pulled image's digest or a built image's name, shortened; empty without an image."""
    if not image:
        return ""
    tag = image.rpartition(":")[2]
    return tag[:19] if tag.startswith("sha256-") else f"built {tag}"


def _curl(service: ServiceRow, key: str) -> str:
    """Return a curl command that works in a shell of the controller, in any folder."""
    route = "/v1/chat/completions"
    rest = '"max_tokens": 2048, "messages": [{"role": "user", "content": "What is 17 + 25?"}]'
    examples = {} if "chat" in service.routes else beside(__file__, "requests.yaml")
    for kind in examples:
        if kind in service.routes:
            route, rest = service.routes[kind], examples[kind]
    body = f'{{"model": "{service.served_names[0]}", {rest}}}'
    data = f"-H 'Content-Type: application/json' -d {shlex.quote(body)}"
    if "transcription" in service.routes:
        route = service.routes["transcription"]
        data = f"-F model={shlex.quote(service.served_names[0])} -F file=@speech.wav"
    ca = Path(service.ca).expanduser().absolute() if service.ca else None
    trusted = f"--cacert {shlex.quote(str(ca))} " if ca else ""
    url = shlex.quote(f"{service.url}{route}")
    return f'curl -s {trusted}{url} -H "Authorization: Bearer {key}" {data}'
