"""Facts for the doctor: a host's examination, its plan, and preflight's findings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkwright.engines import DEFAULT, engine
from sparkwright.engines.command_line import read_words
from sparkwright.engines.engine import Engine, Limits
from sparkwright.findings.finding import Finding, Subject
from sparkwright.host.doctor import Examination, ServiceSeen
from sparkwright.host.lib.records import dataclass, field, replace
from sparkwright.text.timestamps import epoch

#: Largest number of a log's lines, and of a line's characters, to search.
_LINES, _WIDTH = 1000, 1000


@dataclass(frozen=True)
class Planned:
    """Plan of a service, as far as a diagnosis needs it.

    Attributes:
        boot_seconds: longest time of a first boot.
        corrupts: whether the tag has the defect that lowers acceptance under prefix caching.
    """

    release: str
    boot_seconds: int
    speculates: bool
    corrupts: bool = False
    engine: str = ""


@dataclass(frozen=True)
class Facts(Examination):
    """All observations of a host.

    Attributes:
        planned: plan of each service.
        findings: findings of preflight.
    """

    planned: dict[str, Planned] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(
        cls,
        examination: Examination,
        planned: dict[str, Planned] | None = None,
        findings: tuple[Finding, ...] = (),
    ) -> Facts:
        """Combine an examination with the plan; log lines are shortened so that patterns match them
        quickly.
        """
        seen = {
            name: replace(service, log=_short(service.log))
            for name, service in examination.services.items()
        }
        kernel, before = _short(examination.kernel), _short(examination.boot_before)
        own = {"services": seen, "planned": planned or {}, "findings": findings}
        return cls(**vars(examination) | own | {"kernel": kernel, "boot_before": before})

    @property
    def unified(self) -> bool:
        """Return whether CPU and GPU share memory."""
        return any(gpu.unified for gpu in self.gpu.gpus)


@dataclass(frozen=True)
class Serving:
    """An observed service of a host, with its plan."""

    facts: Facts
    seen: ServiceSeen
    planned: Planned | None

    @property
    def uptime(self) -> float:
        """Seconds since the service's container started; 0 if no container runs."""
        container = self.seen.container
        if container is None or not container.running:
            return 0.0
        return max(0.0, self.facts.now - epoch(container.started))

    @property
    def healthy(self) -> bool:
        """Return whether /health reports the engine as healthy."""
        return self.seen.health.code == 200

    @property
    def restarts(self) -> int:
        """Restarts by systemd since the last start by a user."""
        text = self.seen.unit.get("NRestarts", "")
        return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0

    @property
    def arguments(self) -> dict[str, str]:
        """Arguments on the command line of the service's container."""
        parts = self.seen.container.command if self.seen.container else ()
        return {name: " ".join(values) for name, values in read_words(parts).items()}

    def last(self, pattern: str) -> str | None:
        """The last line of the log that matches, without blanks around it."""
        lines = reversed(self.seen.log)
        return next((line.strip() for line in lines if re.search(pattern, line)), None)

    def between(self, name: str) -> float | None:
        """Increase of a counter between the two samples; None without two samples, or after a
        restart.
        """
        looks = self.seen.metrics
        risen = looks[-1][name] - looks[0][name] if len(looks) > 1 else -1.0
        return risen if risen >= 0 else None

    @property
    def engine(self) -> Engine:
        """Return the planned engine; the default engine for an unplanned service."""
        return engine((self.planned and self.planned.engine) or DEFAULT)

    @property
    def limits(self) -> Limits:
        """The limits on the command line of the service's container."""
        return self.engine.limits(self.arguments)


def services(facts: Facts) -> Iterator[tuple[Subject, Serving]]:
    """Every service of a host."""
    for name, seen in facts.services.items():
        yield Subject(service=name), Serving(facts, seen, facts.planned.get(name))


def _short(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Shorten a log to its last lines, each of limited length, as the host's program does."""
    return tuple(line[:_WIDTH] for line in lines[-_LINES:])
