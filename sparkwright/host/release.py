"""Releases on a host: their files, smoke test, and the switch from one to another.

request.json, progress.json, release.json and history.jsonl are read across versions: their keys
are these records' names, but for ``from``, which Python keeps for itself. Times are in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sparkwright.host.lib import documents
from sparkwright.host.lib.records import decode, encode
from sparkwright.host.proxy.pool import Pool, ProxySwitch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


STEPS = (
    *("writing", "draining", "stopping", "switching", "starting"),
    *("proving", "reverting", "ended"),
)


GOOD, REVERTED, FAILED = "good", "reverted", "failed"


@dataclass(frozen=True)
class ServiceSwitch:
    """One service of a switch.

    Attributes:
        to: the release that it goes to, and from_release: that it goes back to, if it has to.
        image: what the release needs; None where its own release.json says it.
        secrets: path of the file with the API key.
        why: what is not as planned.
        restart: whether it is stopped and started.
        gate: smoke test of the new release.
        soak_seconds: how long it is looked on after its first answers.
        pool: its place behind the host's proxy.
        second_boot: whether it is started once more after a start that compiled, on unified memory.
        sleeps: whether another one of its group runs afterwards: it is written, and not started.
        slept: whether another one ran before, so that it sleeps again after a way back.
        follower: whether the head of its cluster, on another host, decides which release runs: this
            one is only laid ready.
        files: path -> text and mode.
    """

    name: str
    home: str
    unit: str
    unit_path: str
    to: str
    from_release: str | None
    image: str | None
    secrets: str
    why: tuple[str, ...]
    restart: bool
    gate: SmokeRequest
    soak_seconds: float = 0.0
    pool: Pool | None = None
    second_boot: bool = False
    sleeps: bool = False
    slept: bool = False
    follower: bool = False
    files: dict[str, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class SwitchRequest:
    """One transaction.

    Attributes:
        by: who started it.
        settle: command that goes on with it after a boot.
        recover: text of the unit that does so.
        unmanaged: ``name restart-policy`` of unmanaged containers that make room.
        proxies: what changes of the host's proxy.
        active: group -> the member that runs before, for a switch that was decided by that.
        activates: group -> the member that runs afterwards, where that is another one.
    """

    id: str
    by: str
    settle: tuple[str, ...]
    recover: str
    services: tuple[ServiceSwitch, ...]
    unmanaged: tuple[str, ...] = ()
    proxies: ProxySwitch | None = None
    active: dict[str, str] = field(default_factory=dict)
    activates: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SwitchJournal:
    """How far a switch is: progress.json.

    Attributes:
        step: one of STEPS.
        result: None until the end, then good, reverted or failed.
        down_seconds: from the stop to the first healthy answer, the longest of its services.
        checks: service -> what the gate saw last.
    """

    id: str = ""
    step: str = ""
    result: str | None = None
    reasons: tuple[str, ...] = ()
    down_seconds: float = 0.0
    checks: dict[str, tuple[CheckResult, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class HistoryEntry:
    """One switch of one service: a line of history.jsonl.

    Attributes:
        at: when it ended, seconds since the epoch.
        down_seconds: from the stop to the first healthy answer.
        result: good, reverted or failed.
        unmanaged: containers that made room.
    """

    service: str
    from_release: str | None
    to: str
    by: str
    at: float
    why: tuple[str, ...]
    down_seconds: float
    result: str
    reasons: tuple[str, ...]
    unmanaged: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReleaseNote:
    """What a release is made of: its release.json. Older ones lack some of it.

    Attributes:
        models: repository -> commit.
        gate: smoke test of the release when a switch goes back to it.
    """

    tag: str = "?"
    image: str = "?"
    recipe: str = "?"
    models: dict[str, str] = field(default_factory=dict)
    served_names: tuple[str, ...] = ()
    gate: SmokeRequest | None = None


#: Names in files on hosts, which are read across versions.
_KEYS = {"from_release": "from", "pool": "door", "proxies": "doors", "unmanaged": "strangers"}


_NAMES = {key: name for name, key in _KEYS.items()}


def request_of(document: dict[str, Any]) -> SwitchRequest:
    """What request.json holds."""
    services = [{**_named(one), "gate": from_gate(one["gate"])} for one in document["services"]]
    return decode(SwitchRequest, {**_named(document), "services": services})


def request_document(request: SwitchRequest) -> dict[str, Any]:
    """The content of request.json."""
    services = [{**_keyed(one), "gate": gate_document(one.gate)} for one in request.services]
    return {**_keyed(request), "services": services}


def entry_of(document: dict[str, Any]) -> HistoryEntry:
    """What a line of history.jsonl holds."""
    return decode(HistoryEntry, _named(document))


def entry_document(entry: HistoryEntry) -> dict[str, Any]:
    """The content of a line of history.jsonl."""
    return _keyed(entry)


def note_document(note: ReleaseNote) -> dict[str, Any]:
    """The content of release.json."""
    return {**encode(note), "gate": note.gate and gate_document(note.gate)}


def gate_document(gate: SmokeRequest) -> dict[str, Any]:
    """The smoke test of a release, as request.json and release.json have it."""
    return to_gate(encode(gate))


def _named(document: dict[str, Any]) -> dict[str, Any]:
    """A file's data by our names."""
    found = {_NAMES.get(key, key): value for key, value in document.items()}
    return {"from_release": None, **found}


def _keyed(record: object) -> dict[str, Any]:
    """A record's data by the files' names."""
    return {_KEYS.get(name, name): value for name, value in encode(record).items()}


@dataclass(frozen=True)
class SmokeRequest:
    """A service, and what it must answer.

    Attributes:
        address, port: where it is reached from its own host.
        secrets: file with the API key.
        boot_seconds: until /health must answer.
        first_answer_seconds: deadline of one answer.
        warm_ups: answers requested beyond the first, since the first ones compile kernels.
        proxy: address and port of the proxy in front of it; None where there is none.
        certificate: file that the proxy serves https with; where it is not there, it serves http.
        speculates: whether tokens must be drafted and accepted.
        thinking: whether the model thinks before its answers here.
        max_tokens: of an answer.
        fail_fast: whether the first crash while starting is a failure; else systemd's restarts are
            waited for.
        follower: whether the head of its cluster, on another host, answers for it.
        metric_names: an engine's name of a metric -> the neutral one (``host/lib/metrics.py``).
        compiled: folder of compiled code below the service's boot caches; empty without one.
    """

    name: str
    unit: str
    address: str
    port: int
    secrets: str
    served_names: tuple[str, ...]
    boot_seconds: int
    first_answer_seconds: int
    warm_ups: int = 0
    proxy: tuple[str, int] | None = None
    speculates: bool = False
    thinking: bool = False
    max_tokens: int = 32
    fail_fast: bool = False
    certificate: str | None = None
    follower: bool = False
    engine: str = ""
    metric_names: dict[str, str] = field(default_factory=dict)
    compiled: str = ""


#: Names in release.json and in a switch's request, which hosts keep across versions.
_GATE_KEYS = {"proxy": "door", "fail_fast": "hasty"}


def to_gate(request: dict[str, object]) -> dict[str, object]:
    """A SmokeRequest's data, as files on hosts name it."""
    gate = {_GATE_KEYS.get(name, name): value for name, value in request.items()}
    for name in ("hasty", "certificate", "follower", "engine", "metric_names", "compiled"):
        if not gate[name]:
            del gate[name]
    return gate


def from_gate(gate: dict[str, object]) -> dict[str, object]:
    """The data of a SmokeRequest, from a gate in a file of this or an earlier version."""
    names = {key: name for name, key in _GATE_KEYS.items()}
    return {names.get(key, key): value for key, value in gate.items()}


@dataclass(frozen=True)
class CheckResult:
    """One check of the short test.

    Attributes:
        detail: what was observed.
    """

    name: str
    ok: bool
    seconds: float
    detail: str = ""


def gate_of(said: object) -> SmokeRequest | None:
    """A release's smoke test, by this or an earlier version; None for what is none."""
    if not isinstance(said, dict):
        return None
    try:
        gate = decode(SmokeRequest, from_gate(said))
    except ValueError:
        return None
    return gate if 0 < gate.port < 65536 else None


def kept_gate(release: Path, known: dict[str, Any] | None = None) -> SmokeRequest | None:
    """The smoke test that is kept with a release.

    Args:
        known: what holds where the release does not say otherwise, as release.json has it.
    """
    note = (documents.read(release / "release.json") or {}).get("gate")
    return gate_of({**(known or {}), **(note if isinstance(note, dict) else {})})
