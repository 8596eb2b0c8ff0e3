"""The README's picture of the page, of an invented fleet: ``make picture``.

python -m tests.browser.picture docs/report.png
"""

import datetime as dt
import sys
from pathlib import Path

from lab import example_report
from sparkwright.catalog import load_catalog
from sparkwright.config.places import CATALOG
from sparkwright.extras.dashboard.render import html
from tests.browser.chromium import look, screenshot
from tests.unit.extras.dashboard.pages import page_of

_WIDTH = 1280


def example(hosts: int = 3) -> str:
    """The invented fleet's page, which says that it is invented."""
    made = dt.datetime(2026, 7, 8, 9, 45, tzinfo=dt.UTC)
    contents = example_report.contents(hosts=hosts, runs=6)
    page = page_of(made=made, catalog=load_catalog([CATALOG]), **contents)
    return html(page, title="Example fleet (invented figures)")


def main() -> None:
    """Take it as high as the page is."""
    page = example()
    height = look(page, width=_WIDTH, opened=False).height
    screenshot(page, Path(sys.argv[1]), width=_WIDTH, height=height, scale=0.75)


if __name__ == "__main__":
    main()
