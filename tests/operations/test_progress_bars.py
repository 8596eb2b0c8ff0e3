"""Lines that change in place: each is redrawn, and separate from the log."""

import logging
import re
from dataclasses import replace
from functools import partial
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.facts.hooks import _Frames
from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.operations.lib import progress
from sparkwright.operations.lib.progress import Live

GB = 10**9


class Terminal(StringIO):
    """Standard error on a terminal of 80 columns."""

    tty = True

    def fileno(self) -> int:
        return 2

    def isatty(self) -> bool:
        return self.tty

    def message(self) -> str:
        """Text that was written since the last call."""
        result = self.getvalue()
        self.seek(0)
        self.truncate()
        return result


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    result = Terminal()
    # pytest restores the real standard error before each test.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=result))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    # A command of an earlier test may have left log handlers in this process.
    monkeypatch.setattr(logging.getLogger("pyinfra"), "handlers", [])
    return result


def _host(name: str) -> Any:
    return SimpleNamespace(name=name)


def _seen(text: str) -> list[str]:
    """The last lines on the terminal, without cursor movements and bars."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[━╸╺]", "", text.rpartition("\x1b[2K")[2])
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


HALF = FetchProgress(bytes_done=GB, bytes_total=2 * GB, rate=10**8, source="the internet")
FIGURES = "1.00 of 2.00 GB at 100 MB/s from the internet, 10 s left"


def test_each_host_has_a_bar_beside_the_sum(terminal: Terminal) -> None:
    shown = Live()
    shown.fetching(_host("a"), HALF)
    assert _seen(terminal.message()) == [f"[a] {FIGURES}"]
    shown.fetching(_host("spark-2"), replace(HALF, source="a neighbour"))
    total = "sum 2.00 of 4.00 GB at 200 MB/s, 10 s left"
    neighbour = FIGURES.replace("the internet", "a neighbour")
    lines = _seen(terminal.message())
    assert lines == [f"[a] {FIGURES}", f"[spark-2] {neighbour}", total]
    # The line of a finished host disappears; the line of a boot is beside the bars of other hosts.
    shown.remove("a")
    shown.remove("a")
    shown.tell(_host("a"), "chat: compiling for 3 s\x1b[2J", None)
    lines = _seen(terminal.message())
    assert lines == [f"[spark-2] {neighbour}", "[a] chat: compiling for 3 s\\x1b[2J"]


def test_the_log_pushes_the_bars_down(terminal: Terminal) -> None:
    logger, handler = logging.getLogger("pyinfra"), logging.StreamHandler(terminal)
    logger.addHandler(handler)
    shown = Live()
    try:
        shown.fetching(_host("a"), HALF)
        shown.fetching(_host("a"), HALF)
        terminal.message()
        logger.warning("a line of the log")
        erased, _, rest = terminal.message().partition("a line of the log\n")
        assert (erased.endswith("\x1b[1A\x1b[2K"), rest) == (True, "")
        assert len(handler.filters) == 1
        # A command that shows its own progress gets the steps, and hosts log no line.
        events: list[tuple[str, str]] = []
        shown.notice = lambda *event: events.append(event)
        for _ in range(2):
            shown.tell(SimpleNamespace(name="a", log=print), "x", None)  # type: ignore[arg-type]
        assert (terminal.message(), events) == ("", [("a", "x")] * 2)
    finally:
        logger.handlers.clear()


def test_a_line_is_logged_at_each_change_and_at_intervals_without_a_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Output never pauses for a minute and never repeats every five seconds."""
    terminal.tty = False
    lines: list[str] = []
    host = SimpleNamespace(name="a", log=lines.append)
    shown: Any = Live()
    for now in range(1000, 1145, 5):
        monkeypatch.setattr("time.monotonic", partial(float, now))
        phase = "weights" if now < 1100 else "compiling"
        shown.tell(host, f"{phase} {now}", of=phase)
    assert lines == [
        "weights 1000", "weights 1030", "weights 1060", "weights 1090", "compiling 1100",
        "compiling 1130",
    ]  # fmt: skip
    shown.fetching(host, HALF)
    assert lines[-1] == FIGURES
    assert terminal.message() == ""


def test_the_sum_is_logged_every_ten_seconds_without_a_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.tty = False
    logger, handler = logging.getLogger("pyinfra"), logging.StreamHandler(terminal)
    monkeypatch.setattr(logger, "filters", [_Frames()])
    monkeypatch.setattr(logger, "level", logging.INFO)
    logger.addHandler(handler)
    shown: Any = Live()
    for now in range(1000, 1025, 2):
        monkeypatch.setattr("time.monotonic", partial(float, now))
        for name in ("a", "b") if now < 1022 else ("a",):
            shown.fetching(SimpleNamespace(name=name, log=bool), HALF)
        if now == 1020:
            shown.remove("b")
    total = "sum: 2.00 of 4.00 GB at 200 MB/s, 10 s left"
    assert terminal.message().splitlines() == [total] * 3


@pytest.mark.parametrize(("term", "on"), [("xterm", True), ("dumb", False), ("", False)])
def test_bars_are_drawn_only_on_a_terminal(
    term: str, on: bool, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    assert Live().on is on
    terminal.tty = False
    assert not Live().on
