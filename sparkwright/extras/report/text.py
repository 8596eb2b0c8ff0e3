"""The same in short, for a terminal."""

from __future__ import annotations

from sparkwright.extras.report.contents import Page
from sparkwright.extras.report.front import front, line
from sparkwright.findings.render import count
from sparkwright.findings.render import text as findings_text
from sparkwright.text.table import columns
from sparkwright.text.visible import paragraph, visible


def text(page: Page) -> str:
    """What is wrong first, the heaviest before the rest; then hosts in a table, and the details."""
    if not page.fleet and not page.findings:
        return front(page)
    measured = {key: one for section in page.sections for key, one in section.services.items()}
    smoke = {(row.host, row.service): row for row in page.smoke}
    table = [("HOST", "SERVICE", "STATE", "SMOKE", "RELEASE", "MEASURED")]
    for row in page.fleet:
        key = row.host, row.service
        passed = f"{smoke[key].passed}/{smoke[key].total}" if key in smoke else "-"
        figures = measured[key].summary if key in measured else "-"
        table.append((row.host, row.service, row.state, passed, row.release or "-", figures))
    lines = [visible(front(page)), ""]
    lines += [
        f"  {n}. {visible(line(finding, page.made))}" for n, finding in enumerate(page.findings, 1)
    ]
    lines += ["", *columns(table), ""] if page.fleet else []
    for row in page.fleet:
        if row.reason:
            lines.append(f"{row.host}: {paragraph(row.reason)}")
    for failed in page.smoke:
        name = f"{failed.host}/{failed.service}"
        lines += [f"{name}: smoke: {visible(why)}" for why in failed.failures]
    for section in page.sections:
        lines += section.lines
    if page.history:
        last = page.history[0]
        releases = f"{last.before or 'nothing'} -> {last.after}"
        lines.append(
            f"{count(len(page.history), 'change')} of a release, the last on {last.host} "
            + visible(f"({last.service}): {releases}, {last.ended}")
        )
    lines += [findings_text(page.problems)] if page.problems else []
    return "\n".join(lines)
