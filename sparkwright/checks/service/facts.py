"""What the doctor uses: a host's examination, what is planned for it, and preflight's findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sparkwright.findings.finding import Finding
from sparkwright.host.doctor import Examination, ServiceSeen
from sparkwright.host.lib.records import decode
from sparkwright.text.timestamps import epoch

#: Lines of a log, and characters of one, that are looked at.
_LINES, _WIDTH = 1000, 1000


@dataclass(frozen=True)
class Planned:
    """What is planned for a service, as far as a diagnosis needs it.

    Attributes:
        corrupts: whether the tag has the defect that decays acceptance under prefix caching.
        boot_seconds: how long a first boot may take.
    """

    release: str
    tag: str
    names: tuple[str, ...]
    boot_seconds: int
    speculates: bool
    corrupts: bool = False


@dataclass(frozen=True)
class Facts(Examination):
    """Everything that was seen of a host.

    Attributes:
        planned: by service.
        findings: preflight's.
    """

    planned: dict[str, Planned] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def unified(self) -> bool:
        """Whether CPU and GPU share one pool of memory."""
        return any(gpu.unified for gpu in self.gpu.gpus)

    def uptime(self, service: ServiceSeen) -> float:
        """Seconds since a service's container started; 0 where none runs."""
        if service.container is None or not service.container.running:
            return 0.0
        return max(0.0, self.now - epoch(service.container.started))

    def each(self) -> Iterator[tuple[str, ServiceSeen, Planned | None]]:
        """Every service, with what is planned for it."""
        for name, one in self.services.items():
            yield name, one, self.planned.get(name)


def facts(answer: Mapping[str, Any]) -> Facts:
    """A host's answer, typed; of what it logs only what patterns are matched against in no time."""
    found = decode(Facts, dict(answer))
    services = {name: replace(one, log=_short(one.log)) for name, one in found.services.items()}
    return replace(
        found,
        services=services,
        kernel=_short(found.kernel),
        boot_before=_short(found.boot_before),
    )


def _short(lines: tuple[str, ...]) -> tuple[str, ...]:
    """As the host's own program cuts them: the last lines, none of them endless."""
    return tuple(line[:_WIDTH] for line in lines[-_LINES:])
