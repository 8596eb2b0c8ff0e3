"""Chromium without a window: look and behaviour of a page at a width and in a colour scheme."""

import html
import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Scheme = Literal["light", "dark"]

#: Names of the program in distributions.
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_SCHEMES = {"dark": 0, "light": 1}
#: Script for a copy of the page, which reports requests, elements beyond the edge, and unreadable
#: texts.
_PROBE = Path(__file__).with_name("probe.js")
#: The page's own policy, and a policy that lets the probe run but still blocks all requests.
_POLICY, _PROBING = "default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';"


@dataclass(frozen=True)
class Look:
    """Observations of a page in the browser.

    Attributes:
        width, scroll_width: width of the page's window and of its contents, in CSS pixels.
        height: height of the page's contents.
        sticking_out: elements that extend beyond the window.
        scrolling: tables that are wider than the window, and scroll separately.
        squeezed: texts with about one letter in a line.
        faint: texts whose contrast is below WCAG's 4.5.
        fetched: requested addresses.
        blocked: addresses that the page's policy blocked.
    """

    width: int
    scroll_width: int
    height: int
    dark: bool
    sticking_out: list[str]
    scrolling: list[str]
    squeezed: list[str]
    faint: list[str]
    fetched: list[str]
    blocked: list[str]


def browser() -> str:
    """The browser's program.

    Raises:
        SystemExit: no chromium is installed.
    """
    for name in _NAMES:
        result = shutil.which(name)
        if result:
            return result
    raise SystemExit("no chromium: `sudo python3 -m lab packages --browser` installs it")


def look(page: str, *, width: int, scheme: Scheme = "light", opened: bool = True) -> Look:
    """Open a copy of a page that reports its own observations, with every section opened.

    A window is at least 500 pixels wide, so the page is opened in a frame of the requested width:
    media queries use the frame's width.
    """
    assert _POLICY in page
    probed = page.replace(_POLICY, _PROBING, 1)
    probed = probed.replace(
        "<head>",
        f"<head><script>const opened = {json.dumps(opened)};{_PROBE.read_text()}</script>",
        1,
    )
    with tempfile.TemporaryDirectory(prefix="sparkwright-page-") as folder:
        (Path(folder) / "page.html").write_text(probed, encoding="utf-8")
        frame = Path(folder) / "frame.html"
        frame.write_text(
            f'<!doctype html><body style="margin:0"><iframe src="page.html" style="border:0;'
            f'width:{width}px;height:900px"></iframe><script>addEventListener("message", e => '
            "document.body.dataset.seen = e.data)</script>"
        )
        dumped = _run(
            folder, f"--window-size={max(width, 500)},900", scheme, "--dump-dom",
            "--virtual-time-budget=5000", frame,
        )  # fmt: skip
    match = re.search(r'data-seen="([^"]*)"', dumped)
    assert match, "the probe did not answer"
    seen: dict[str, Any] = json.loads(html.unescape(match[1]))
    return Look(**seen)


def screenshot(
    page: str, to: Path, *, width: int, height: int, scheme: Scheme = "light", scale: float = 1
) -> None:
    """Take a picture of the unchanged page, with ``scale`` dots for each CSS pixel."""
    with tempfile.TemporaryDirectory(prefix="sparkwright-page-") as folder:
        file = Path(folder) / "page.html"
        file.write_text(page, encoding="utf-8")
        size = f"--window-size={width},{height}"
        dots = f"--force-device-scale-factor={scale:g}"
        _run(folder, size, scheme, dots, f"--screenshot={to.resolve()}", file)


def _run(folder: str, size: str, scheme: Scheme, *arguments: str | Path) -> str:
    # chromium as root needs --no-sandbox, and it opens only pages of this project.
    done = subprocess.run(
        [browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--hide-scrollbars",  # scroll bars take no width, as on a phone
         "--disable-background-networking", f"--user-data-dir={folder}/profile",
         f"--blink-settings=preferredColorScheme={_SCHEMES[scheme]}", size,
         *map(str, arguments[:-1]), Path(arguments[-1]).as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
