"""The same in short, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from sparkwright.extras.report.contents import Bench, Page
from sparkwright.extras.report.findings import findings, likely
from sparkwright.extras.report.front import front, line
from sparkwright.extras.report.words import bench_words, count, finding_words
from sparkwright.findings.render import text as findings_text
from sparkwright.text.table import columns
from sparkwright.text.visible import paragraph, visible

#: So many causes of one service; the page has all.
_CAUSES = 2


def text(page: Page) -> str:
    """What is wrong first, the heaviest before the rest; then hosts in a table, and the details."""
    if not page.fleet and not page.findings:
        return front(page)
    benches = {(bench.result.host, bench.result.service): bench for bench in page.benches}
    smoke = {(row.host, row.service): row for row in page.smoke}
    table = [("HOST", "SERVICE", "STATE", "SMOKE", "RELEASE", "MEASURED")]
    for row in page.fleet:
        key = row.host, row.service
        passed = f"{smoke[key].passed}/{smoke[key].total}" if key in smoke else "-"
        figures = bench_words(benches[key]) if key in benches else "-"
        table.append((row.host, row.service, row.state, passed, row.release or "-", figures))
    lines = [visible(front(page)), ""]
    lines += [f"  {n}. {visible(line(one, page.made))}" for n, one in enumerate(page.findings, 1)]
    lines += ["", *columns(table), ""] if page.fleet else []
    for row in page.fleet:
        if row.reason:
            lines.append(f"{row.host}: {paragraph(row.reason)}")
    for failed in page.smoke:
        name = f"{failed.host}/{failed.service}"
        lines += [f"{name}: smoke: {visible(why)}" for why in failed.failures]
    for bench in page.benches:
        lines += _findings(bench)
    if page.history:
        last = page.history[0]
        releases = f"{last.before or 'nothing'} -> {last.after}"
        lines.append(
            f"{count(len(page.history), 'change')} of a release, the last on {last.host} "
            + visible(f"({last.service}): {releases}, {last.ended}")
        )
    lines += [findings_text(page.problems)] if page.problems else []
    return "\n".join(lines)


def _findings(bench: Bench) -> Iterator[str]:
    name = f"{bench.result.host}/{bench.result.service}"
    found = list(findings(bench))
    for _, alike in groupby(found, key=lambda finding: type(finding.worst)):
        first, *others = alike
        more = f" (and {count(len(others), 'measure')} more)" if others else ""
        yield f"{name}: {visible(finding_words(first))}{more}"
    if not bench.well:
        if bench.errors:
            yield f"{name}: {count(bench.errors, 'request')} failed"
        for cause, _ in likely(bench)[:_CAUSES]:
            yield f"    perhaps {cause.what}"
            yield f"    -> {cause.look}"
