"""The fleet's load as a table: a line for each service, from two samples of its host.

This module does no I/O. Rates are differences of two counters; a counter that restarted with its
engine gives no rate until the second sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sparkwright.host.lib import metrics
from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.load import HostLoad
from sparkwright.text.sizes import GIB
from sparkwright.text.table import columns
from sparkwright.text.visible import visible

#: Heading of a figure, the line's value and its format.
_FIGURES = (
    ("TOK/S", "tokens", "{:.1f}"), ("RUN", "running", "{:.0f}"), ("WAIT", "waiting", "{:.0f}"),
    ("KV", "cache", "{:.0%}"), ("ACC", "accepted", "{:.0%}"), ("GPU", "gpu", "{:.0f}%"),
    ("W", "power", "{:.0f}"), ("°C", "temperature", "{:.0f}"),
)  # fmt: skip
COLUMNS = ("HOST", "SERVICE", *(heading for heading, _, _ in _FIGURES), "MEM GiB")
#: Counters whose increase is a figure.
_COUNTERS = (
    metrics.GENERATED, metrics.DRAFTED, metrics.ACCEPTED,
    metrics.FIRST_TOKEN_SUM, metrics.FIRST_TOKEN_COUNT,
)  # fmt: skip
#: Largest number of characters of a figure.
_FIGURE = 9
#: A service's metrics by their neutral names.
Metrics = Mapping[str, float]


@dataclass(frozen=True)
class Line:
    """A line of the table: a service, or a host without services. Unknown values are None.

    Attributes:
        problem: reason for missing figures.
        tokens: generated tokens a second.
        first_token: mean seconds to the first token, of requests since the last sample.
        cache, accepted: shares.
        gpu, power, temperature: per cent, watts and degrees of the hottest GPU.
        clock: MHz of the slowest GPU.
        used, total: bytes of the memory that the GPU uses.
    """

    host: str
    service: str | None
    problem: str = ""
    tokens: float | None = None
    first_token: float | None = None
    running: float | None = None
    waiting: float | None = None
    cache: float | None = None
    accepted: float | None = None
    gpu: float | None = None
    power: float | None = None
    temperature: float | None = None
    clock: float | None = None
    used: int | None = None
    total: int | None = None


@dataclass(frozen=True)
class Seen:
    """A host's last two samples, or the reason for their absence."""

    now: HostLoad | None = None
    before: HostLoad | None = None
    problem: str = ""

    def then(self, look: HostLoad | Exception) -> Seen:
        """Add a sample, or the reason for its absence: rates continue from the last sample once
        the host answers.
        """
        if isinstance(look, HostLoad):
            return Seen(look, self.now or self.before)
        return Seen(None, self.now or self.before, str(look))


def lines(
    fleet: Mapping[str, Seen], meant: Callable[[str, str], bool] = lambda *_: True
) -> Iterator[Line]:
    """Yield a line for each service of the fleet.

    Args:
        meant: function that returns whether a service of a host is shown.
    """
    for host, seen in fleet.items():
        if seen.now is None:
            yield Line(host, None, seen.problem or "no answer yet")
            continue
        about = _host(host, seen.now)
        before = seen.before.services if seen.before else {}
        seconds = seen.now.at - seen.before.at if seen.before else 0.0
        for name, now in seen.now.services.items():
            line = replace(about, service=name)
            if not meant(host, name):
                continue
            if now is not None:
                yield _service(line, now, before.get(name), seconds)
            elif name in seen.now.sleeping:
                yield replace(line, problem=f"sleeps: {seen.now.sleeping[name]} runs")
            else:
                yield replace(line, problem="no metrics: the service does not serve")
        if not seen.now.services:
            yield about


def table(rows: Sequence[Line]) -> list[str]:
    """Return a heading, and a line for each service."""
    return columns([COLUMNS, *map(_cells, rows)])


def problems(rows: Sequence[Line]) -> list[str]:
    """Return the reasons for missing figures of services and hosts."""
    return [
        visible(": ".join(filter(None, (line.host, line.service, line.problem))))
        for line in rows
        if line.problem
    ]


def _cells(line: Line) -> tuple[str, ...]:
    values = [(getattr(line, name), form) for _, name, form in _FIGURES]
    figures = ["-" if value is None else form.format(value) for value, form in values]
    used, total = (line.used or 0) / GIB, (line.total or 0) / GIB
    figures.append("-" if line.used is None else f"{used:.0f}/{total:.0f}")
    return (line.host, line.service or "-", *map(_short, figures))


def _service(line: Line, now: Metrics, before: Metrics | None, seconds: float) -> Line:
    generated, drafted, accepted, waited, requests = (
        _rise(now.get(name), (before or {}).get(name)) for name in _COUNTERS
    )
    return replace(
        line,
        first_token=waited / requests if requests and waited is not None else None,
        tokens=generated / seconds if generated is not None and seconds > 0 else None,
        running=now.get(metrics.RUNNING, 0.0),
        waiting=now.get(metrics.WAITING, 0.0),
        cache=now.get(metrics.CACHE, 0.0),
        accepted=min(1.0, accepted / drafted) if drafted and accepted is not None else None,
    )


def _rise(now: float | None, before: float | None) -> float | None:
    """Return the increase of a counter; None if the counter restarted."""
    return None if now is None or before is None or now < before else now - before


def _host(name: str, load: HostLoad) -> Line:
    """Return the host's figures; with several GPUs, the highest figures."""
    own = [gpu for gpu in load.gpus if gpu.memory_used_mib is not None and not gpu.unified]
    used, total = load.memory - load.available, load.memory
    if own:
        used = sum(item.memory_used_mib or 0 for item in own) << 20
        total = sum(item.memory_mib or 0 for item in own) << 20
    return Line(
        host=name,
        service=None,
        clock=min((gpu.clock_mhz for gpu in load.gpus if gpu.clock_mhz is not None), default=None),
        gpu=_highest(load.gpus, "busy_percent"),
        power=_highest(load.gpus, "power_w"),
        temperature=_highest(load.gpus, "temperature_c"),
        used=used if total else None,
        total=total or None,
    )


def _highest(gpus: tuple[Gpu, ...], name: str) -> float | None:
    return max((value for gpu in gpus if (value := getattr(gpu, name)) is not None), default=None)


def _short(figure: str) -> str:
    """Shorten a figure, since a host may report any number."""
    return figure if len(figure) <= _FIGURE else f"{figure[: _FIGURE - 1]}…"
