"""The page with its section on speed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparkwright.catalog import Catalog
from sparkwright.extras.bench.judgement import Bench
from sparkwright.extras.bench.results import Result
from sparkwright.extras.bench.section import section_of
from sparkwright.extras.dashboard import page
from sparkwright.extras.dashboard.contents import Page, Status, Switch


def page_of(
    *,
    catalog: Catalog,
    results: Mapping[tuple[str, str], Result] | None = None,
    planned: Mapping[str, Sequence[str]] | None = None,
    history: Sequence[Switch] = (),
    reported: Status | None = None,
    **contents: Any,
) -> Page:
    """The page of these results by host and service, and of further contents."""
    speed = section_of(results or {}, (), catalog, planned)
    status = replace(reported or Status(), history=sorted(history, key=lambda item: item.when))
    return page.page_of(planned=planned, sections=[speed], status=status, **contents)


def benches(made: Page) -> tuple[Bench, ...]:
    """The judged results that a page shows."""
    shown: tuple[Bench, ...] = made.sections[0].context["benches"]
    return shown
