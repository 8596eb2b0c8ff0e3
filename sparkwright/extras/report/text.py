"""The same in short, for a terminal."""

from __future__ import annotations

from sparkwright.extras.report.contents import Page
from sparkwright.extras.report.front import line
from sparkwright.findings.render import count
from sparkwright.findings.render import text as findings_text
from sparkwright.text.table import columns
from sparkwright.text.visible import paragraph, visible


def text(page: Page) -> str:
    """What is wrong first, the heaviest before the rest; then hosts in a table, and the details."""
    if not page.fleet and not page.findings:
        return page.front
    measured = {key: one for section in page.sections for key, one in section.services.items()}
    smoke = {(row.host, row.service): f"{row.passed}/{row.total}" for row in page.smoke}
    table = [("HOST", "SERVICE", "STATE", "SMOKE", "RELEASE", "MEASURED")]
    for row in page.fleet:
        key = row.host, row.service
        figures = measured[key].summary if key in measured else "-"
        passed = smoke.get(key, "-")
        table.append((row.host, row.service, row.state, passed, row.release or "-", figures))
    lines = [visible(page.front), ""]
    for number, finding in enumerate(page.findings, 1):
        lines.append(f"  {number}. {visible(line(finding, page.made))}")
    lines += ["", *columns(table), ""] if page.fleet else []
    lines += [f"{row.host}: {paragraph(row.reason)}" for row in page.fleet if row.reason]
    lines += [
        f"{failed.host}/{failed.service}: smoke: {visible(why)}"
        for failed in page.smoke
        for why in failed.failures
    ]
    lines += [text for section in page.sections for text in section.lines]
    if page.history:
        last = page.history[0]
        releases = f"{last.before or 'nothing'} -> {last.after}"
        lines.append(
            f"{count(len(page.history), 'change')} of a release, the last on {last.host} "
            + visible(f"({last.service}): {releases}, {last.ended}")
        )
    return "\n".join([*lines, *([findings_text(page.problems)] if page.problems else [])])
