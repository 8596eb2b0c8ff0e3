"""The page as one HTML file that loads nothing from outside, and as JSON."""

from __future__ import annotations

import datetime as dt
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import TypeAdapter

from sparkwright.config.places import template_folders
from sparkwright.extras.bench.measures import MEASURES
from sparkwright.extras.report.charts import charts
from sparkwright.extras.report.contents import Page
from sparkwright.extras.report.findings import findings, likely
from sparkwright.extras.report.front import age_mark, bad_state, front, groups, line
from sparkwright.extras.report.plots import number
from sparkwright.extras.report.words import (
    amount,
    cell_name,
    count,
    figure,
    finding_words,
    hosts_in_short,
    times,
)
from sparkwright.text.visible import visible_text

_PAGE: TypeAdapter[Page] = TypeAdapter(Page)


def html(page: Page, *, title: str = "Fleet") -> str:
    """The whole page. The same contents give the same bytes."""
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            title=title,
            measures=MEASURES,
            charts=charts,
            findings=findings,
            likely=likely,
            front=front,
            line=line,
            groups=groups,
            age_mark=age_mark,
            bad_state=bad_state,
        )
    )


def plain(page: Page) -> dict[str, Any]:
    """The same as data that JSON can hold."""
    data: dict[str, Any] = _PAGE.dump_python(page, mode="json")
    return {"well": page.well, "front": front(page), **data}


def _utc(when: dt.datetime) -> str:
    return f"{when.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC"


def _shown(value: object) -> str:
    """What hosts say turns no line around on the page, either."""
    said = visible_text(str(value))
    return Markup(said) if isinstance(value, Markup) else said


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(template_folders("report")),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "utc": _utc,
        "number": number,
        "count": count,
        "cell_name": cell_name,
        "hosts": hosts_in_short,
        "times": times,
        "amount": amount,
        "figure": lambda ends, unit: figure(ends[0], ends[1], unit),
        "finding": finding_words,
    }
    return environment
