"""Roll-out of new releases over a fleet's hosts: their order and their outcome."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from sparkwright.config.settings import RolloutSettings
from sparkwright.findings.finding import Finding
from sparkwright.host.release import HistoryEntry
from sparkwright.plan.tags import MESSAGES


def batches(hosts: Sequence[str], settings: RolloutSettings) -> list[list[str]]:
    """Hosts in the order of their batches: the canaries first, then the batches of other hosts.

    Named canaries that are not among the hosts (another --limit) are skipped.
    """
    if isinstance(settings.canaries, int):
        first = list(hosts[: settings.canaries])
    else:
        first = [name for name in hosts if name in settings.canaries]
    rest = [name for name in hosts if name not in first]
    if isinstance(settings.batch, int):
        size = settings.batch
    else:
        size = max(1, ceil(len(hosts) * int(settings.batch.removesuffix("%")) / 100))
    result = [first] if first else []
    return [*result, *(rest[at : at + size] for at in range(0, len(rest), size))]


def unlike(settings: Mapping[str, RolloutSettings]) -> Iterator[Finding]:
    """Roll-out settings of hosts, by name, that differ and affect the whole fleet."""
    first = next(iter(settings), "")
    for key in ("canaries", "batch", "pause_seconds", "on_failure", "unprepared"):
        for name, item in settings.items():
            if (value := getattr(item, key)) != (usual := getattr(settings[first], key)):
                facts = {"setting": value, "usual": usual, "host": first}
                yield MESSAGES.mistake("unlike-rollout", f"rollout.{key}", name, **facts)


def earlier(
    current: str | None, kept: Mapping[str, float], history: Sequence[HistoryEntry]
) -> str | None:
    """The kept release that a service ran before its current release.

    Args:
        kept: release -> time when the release was written.
        history: the service's switches, oldest first.
    """
    for entry in reversed(history):
        before = entry.from_release
        if before in kept and entry.result == "good" and entry.to == current:
            return before
    others = [name for name in kept if name != current]
    return max(others, key=lambda name: kept[name]) if others else None


def behind_another_proxy(name: str, release: str, *, was: bool, planned: bool) -> str | None:
    """Return the reason why a service can't go back to a release with the present proxies; None if
    the service can go back.

    The plan, not the release, sets ports: a release that listens on the service's own port
    conflicts with the proxy, and a release that listens behind a proxy can't be reached without the
    proxy.

    Args:
        was: whether the release was rendered for a service behind a proxy.
        planned: whether the plan has a proxy.
    """
    if was == planned:
        return None
    made, plan = ("with", "no proxy") if was else ("without", "a proxy")
    return (
        f"release {release} of {name} was made {made} a proxy, and the plan has {plan}: clients "
        "could not reach the service. Set proxy in inventory or group_data as for this release, "
        "and deploy instead of a rollback"
    )


@dataclass
class Rollout:
    """Progress of one run's roll-out.

    Attributes:
        batches: hosts by batch.
        stopped: reason why no further host is switched; None without a failure.
        began: whether any host has been switched.
        ended_at: end of the last switch in seconds; None before the first switch.
        switched: switched host -> service -> its former release.
    """

    batches: list[list[str]]
    stopped: str | None = None
    began: bool = False
    ended_at: float | None = None
    switched: dict[str, dict[str, str]] = field(default_factory=dict)

    def place(self, host: str) -> str:
        """Text such as ``batch 2 of 3`` for a host."""
        turn = next(n for n, names in enumerate(self.batches, 1) if host in names)
        return f"batch {turn} of {len(self.batches)}"

    def stop(self, reason: str) -> None:
        """Switch no further host. The first reason is kept."""
        self.stopped = self.stopped or reason

    def wait(self, host: str, pause: float, now: float) -> float:
        """Seconds until a host's turn."""
        if self.ended_at is None or host in self.batches[0]:
            return 0.0
        return max(0.0, self.ended_at + pause - now)
