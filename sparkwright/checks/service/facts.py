"""Facts for the doctor: a host's examination, its plan, and preflight's findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sparkwright.engines import DEFAULT, engine
from sparkwright.engines.engine import Engine, Limits
from sparkwright.findings.finding import Finding, Subject
from sparkwright.host.doctor import ContainerSeen, Examination, ServiceSeen
from sparkwright.text.timestamps import epoch

#: Lines of a log, and characters of one, that are looked at.
_LINES, _WIDTH = 1000, 1000


@dataclass(frozen=True)
class Planned:
    """Plan of a service, as far as a diagnosis needs it.

    Attributes:
        boot_seconds: how long a first boot may take.
        corrupts: whether the tag has the defect that decays acceptance under prefix caching.
    """

    release: str
    boot_seconds: int
    speculates: bool
    corrupts: bool = False
    engine: str = DEFAULT


@dataclass(frozen=True)
class Facts(Examination):
    """Everything that was seen of a host.

    Attributes:
        planned: by service.
        findings: preflight's.
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
        """An examination beside the plan; of logs only what patterns match against in no time."""
        facts = cls(**vars(examination) | {"planned": planned or {}, "findings": findings})
        return replace(
            facts,
            services={
                name: replace(service, log=_short(service.log))
                for name, service in facts.services.items()
            },
            kernel=_short(facts.kernel),
            boot_before=_short(facts.boot_before),
        )

    @property
    def unified(self) -> bool:
        """Whether CPU and GPU share one pool of memory."""
        return any(gpu.unified for gpu in self.gpu.gpus)


@dataclass(frozen=True)
class Serving:
    """A service of a host as it was seen, beside what is planned for it."""

    facts: Facts
    seen: ServiceSeen
    planned: Planned | None

    @property
    def uptime(self) -> float:
        """Seconds since the service's container started; 0 where none runs."""
        container = self.seen.container
        if container is None or not container.running:
            return 0.0
        return max(0.0, self.facts.now - epoch(container.started))

    @property
    def engine(self) -> Engine:
        """The engine that is planned; the default one for a service that is not."""
        return engine(self.planned.engine if self.planned else DEFAULT)

    @property
    def limits(self) -> Limits:
        """The limits on its container's command line."""
        container = self.seen.container
        return self.engine.limits(container.arguments if container else {})


def services(facts: Facts) -> Iterator[tuple[Subject, Serving]]:
    """Every service of a host."""
    for name, seen in facts.services.items():
        yield Subject(service=name), Serving(facts, seen, facts.planned.get(name))


def containers(facts: Facts) -> Iterator[tuple[Subject, ContainerSeen]]:
    """The container of every service that has one."""
    for subject, service in services(facts):
        if service.seen.container is not None:
            yield subject, service.seen.container


def _short(lines: tuple[str, ...]) -> tuple[str, ...]:
    """As the host's own program cuts them: the last lines, none of them endless."""
    return tuple(line[:_WIDTH] for line in lines[-_LINES:])
