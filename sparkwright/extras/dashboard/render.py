"""The page as one HTML file that loads nothing from outside, as JSON, and for a terminal."""

import datetime as dt
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import TypeAdapter

from sparkwright.config.places import template_folders
from sparkwright.extras.dashboard.contents import Page
from sparkwright.extras.dashboard.front import age_mark, bad_state, groups, line, memories
from sparkwright.findings.render import count
from sparkwright.findings.render import text as findings_text
from sparkwright.text.short import figure, hosts_in_short, number
from sparkwright.text.table import columns
from sparkwright.text.visible import paragraph, visible, visible_text

_PAGE: TypeAdapter[Page] = TypeAdapter(Page)


def html(
    page: Page, *, title: str = "Fleet", live: bool = False, actions: Sequence[str] = ()
) -> str:
    """The whole page. The same contents give the same bytes.

    Args:
        live: whether a script on the page updates the hosts.
        actions: the page's actions.
    """
    folders = tuple(dict.fromkeys(["dashboard", *(section.folder for section in page.sections)]))
    return _environment(folders).get_template("page.html.j2").render(
        page=page, title=title, live=live, actions=actions, line=line, groups=groups,
        memories=memories, age_mark=age_mark, bad_state=bad_state, figure=figure,
    )  # fmt: skip


def part(name: str) -> str:
    """Return the stylesheet or the script by its name."""
    return _environment(("dashboard",)).get_template(name).render()


def plain(page: Page) -> dict[str, Any]:
    """The page as data that JSON can hold."""
    return dict(_PAGE.dump_python(page, mode="json"))


def text(page: Page) -> str:
    """Render the findings, the most severe first; then hosts in a table, and the details."""
    measured = {key: item for section in page.sections for key, item in section.services.items()}
    smoke = {(row.host, row.service): f"{row.passed}/{row.total}" for row in page.smoke}
    table = [("HOST", "SERVICE", "STATE", "SMOKE", "RELEASE", "MEASURED")]
    for row in page.fleet:
        key = row.host, row.service
        figures = measured[key].summary if key in measured else "-"
        passed = smoke.get(key, "-")
        table.append((row.host, row.service, row.state, passed, row.release or "-", figures))
    template = _environment(("dashboard",), markup=False).get_template("page.txt.j2")
    problems = findings_text(page.problems)
    shown = template.render(page=page, line=line, table=columns(table), problems=problems)
    return shown.rstrip("\n")


def _utc(when: dt.datetime) -> str:
    return f"{when.astimezone(dt.UTC):%Y-%m-%d %H:%M} UTC"


def _shown(value: object) -> str:
    """Escape control characters of a host's text, which could reverse a line of the page."""
    text = visible_text(str(value))
    return Markup(text) if isinstance(value, Markup) else text


@cache
def _environment(folders: tuple[str, ...], markup: bool = True) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([path for name in folders for path in template_folders(name)]),
        undefined=StrictUndefined,
        autoescape=markup,
        finalize=_shown if markup else str,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "utc": _utc, "number": number, "count": count, "hosts": hosts_in_short, "visible": visible,
        "paragraph": paragraph,
    }  # fmt: skip
    return environment
