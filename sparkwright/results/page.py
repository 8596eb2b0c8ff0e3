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
    except OverflowError as error:  # in UTC the year is outside of the calendar
        raise ValueError("the time is out of range in UTC") from error


#: A time with its zone, kept in UTC.
Moment = Annotated[AwareDatetime, AfterValidator(_to_utc)]


class Weight(IntEnum):
    """Weight of a finding, the heaviest first."""

    DOWN = 0
    WRONG = 1
    BELOW_CARD = 2
    WARNING = 3
    FILE = 4


@dataclass(frozen=True)
class Weighed:
    """A finding with its weight.

    Attributes:
        problem: text after hosts and service: ``3 of 7 figures are worse than the card's``.
        seen: time of the finding's last observation.
        more: explanation and remedy, as lines.
    """

    weight: Weight
    hosts: tuple[str, ...]
    service: str | None
    problem: str
    seen: dt.datetime | None = None
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasuredService:
    """A service at its last measurement.

    Attributes:
        versions: further names and versions, such as vLLM's.
        decode, first_token: tokens/s and seconds of one stream of a short prompt.
        summary: the measurement's figures in a line.
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
        folder, template: folder and template of the section's HTML, below templates/; the template
        gets this section as ``section``.
        context: values for the template.
        services: (host, service) -> measurements.
        lines: summary of the section, for a terminal.
        data: the section as JSON, by the keys of the page's document.
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
