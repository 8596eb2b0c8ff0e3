"""Parts of the fleet's page from extras: findings by their weight, and sections."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime

from sparkwright.findings.finding import Finding


def _to_utc(when: dt.datetime) -> dt.datetime:
    try:
        return when.astimezone(dt.UTC)
    except OverflowError as error:  # a year that UTC does not have
        raise ValueError("no time that UTC has") from error


#: A time with its zone, kept in UTC.
Moment = Annotated[AwareDatetime, AfterValidator(_to_utc)]


class Weight(IntEnum):
    """Weight of a finding, the heaviest first."""

    DOWN = 0
    WRONG = 1
    SLOW = 2
    BELOW_CARD = 3
    WARNING = 4
    FILE = 5


@dataclass(frozen=True)
class Weighed:
    """A finding with its weight.

    Attributes:
        problem: after hosts and service: ``answers 31 % slower since the driver changed 1 → 2``.
        low, high: share that ``problem`` names as ``{}``; None without a share.
        began: time of its begin, if known.
        seen: time of its last observation.
        more: explanation and remedy, a line each.
    """

    weight: Weight
    hosts: tuple[str, ...]
    service: str | None
    problem: str
    low: float | None = None
    high: float | None = None
    began: dt.datetime | None = None
    seen: dt.datetime | None = None
    more: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """``problem`` with its share."""
        if self.low is None or self.high is None:
            return self.problem
        low, high = (f"{100 * share:.0f}" for share in (self.low, self.high))
        return self.problem.replace("{}", low if low == high else f"{low} to {high}", 1)


@dataclass(frozen=True)
class MeasuredService:
    """A service at its last measurement.

    Attributes:
        versions: further names and versions, such as vLLM's.
        decode, first_token: tokens/s and seconds of one stream of a short prompt.
        summary: its figures in a line.
    """

    when: dt.datetime
    gpu: str
    driver: str | None
    release: str | None
    tag: str | None
    models: Mapping[str, str]
    versions: Mapping[str, str]
    decode: float | None
    first_token: float | None
    summary: str


@dataclass(frozen=True)
class Section:
    """A section of the page, made by an extra.

    Attributes:
        folder, template: of its HTML, below templates/; the template gets this section as
        ``section``.
        context: values for the template.
        services: (host, service) -> measurements.
        lines: the same in short, for a terminal.
        data: the same as JSON, by the keys of the page's document.
        problems: files that could not be read.
    """

    folder: str
    template: str
    context: Mapping[str, Any]
    services: Mapping[tuple[str, str], MeasuredService]
    findings: tuple[Weighed, ...] = ()
    lines: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()
