"""Pictures of the pages of an invented fleet: ``make picture``.

python -m tests.browser.picture docs
"""

import datetime as dt
import sys
from pathlib import Path
from typing import Any

from lab import example_report
from sparkwright.catalog import load_catalog
from sparkwright.config.places import CATALOG
from sparkwright.extras.dashboard.glance import UnfinishedFetch
from sparkwright.extras.dashboard.render import html
from sparkwright.extras.dashboard.view import Fleet
from sparkwright.host.lib.records import replace
from sparkwright.host.lock import Owner
from sparkwright.host.models.report import UsageRow
from sparkwright.host.release import HistoryEntry, Phase, SwitchJournal
from sparkwright.host.watch.state import WatchFinding, WatchReport
from tests.browser.chromium import look, screenshot
from tests.browser.tab import opened
from tests.unit.extras.dashboard.glances import NOW, RELEASE, empty, expected, glance, serving
from tests.unit.extras.dashboard.pages import page_of

_WIDTH = 1280


def example(hosts: int = 3) -> str:
    """Render the page of the invented fleet, with a mark that the fleet is invented."""
    made = dt.datetime(2026, 7, 8, 9, 45, tzinfo=dt.UTC)
    contents = example_report.contents(hosts=hosts, runs=6)
    page = page_of(made=made, catalog=load_catalog([CATALOG]), **contents)
    return html(page, title="Example fleet (invented figures)")


def dashboard(folder: Path) -> None:
    """Draw the live page of invented hosts, with a switch, a download and a host that is off."""
    names = ["spark-1", "spark-2", "spark-3", "rtx-1", "spark-4", "spark-5"]
    memory = example_report.memory
    fleet = Fleet({name: expected("qwen36", memory=memory(name)) for name in names})
    fetch = UnfinishedFetch(23 * 10**9, "running", 9 * 10**9, 10**8, name="org/model", runs=True)
    phases = {"qwen36": Phase("loading weights", NOW + 80)}
    owner = Owner(by="me@laptop", since=NOW, batch="batch 1 of 2")
    waits = {"lock": owner}
    work = {
        **waits, "switch": SwitchJournal("1", "starting", phases=phases), "services": {},
    }  # fmt: skip
    end = HistoryEntry(
        "qwen36", "0aa1c5ffab17", RELEASE, "me@laptop", NOW + 60, (), 94.2, "good", ()
    )
    watch = WatchReport(
        NOW + 100, (WatchFinding("disk-fills", None, "warning", "94 % of / is used", NOW),)
    )
    usage = (UsageRow("2026-11-24", "openclaw", "qwen36", 1204, 3, 2_400_000, 351_234, 9.0, 0),)
    special: dict[str, dict[str, Any]] = {
        "spark-1": {"status": {**waits, "history": (end,)}, "usage": usage},
        "spark-2": {"status": {"watch": watch}}, "spark-3": {"status": work},
        "rtx-1": {"status": {"lock": replace(owner, batch="batch 2 of 2")}},
        "spark-4": {"fetches": (fetch,)},
    }  # fmt: skip
    title = "Example fleet (invented figures)"
    with serving(fleet, empty, title=title) as site, opened() as tab:
        for n, name in enumerate(names):
            for at in (100.0, 105.0) if name != "spark-3" else (100.0,):
                rate = {"qwen36": 21.0 + 17 * n % 50}
                fleet.take(name, glance(at, hour=rate, **special.get(name, {})))
        fleet.take("spark-5", OSError("not reached: no route to host"))
        for scheme in ("light", "dark"):
            url = f"{site.url}/?token={site.token}"
            tab.open(url, width=_WIDTH, height=1000, dark=scheme == "dark", scale=0.75)
            tab.wait(f"document.querySelectorAll('.service').length >= {len(names) - 1}")
            tab.wait("document.getElementById('front').innerText.includes('serve')")
            tab.picture(folder / f"dashboard-{scheme}.png")


def main() -> None:
    """Draw the report at its full height, and the dashboard in both colour schemes."""
    folder, page = Path(sys.argv[1]), example()
    height = look(page, width=_WIDTH, opened=False).height
    screenshot(page, folder / "report.png", width=_WIDTH, height=height, scale=0.75)
    dashboard(folder)


if __name__ == "__main__":
    main()
