"""Lines that change in place: drawn again, and out of the way of what the log says."""

import logging
import os
from io import StringIO
from types import SimpleNamespace

import click
import pytest

from sparkwright.operations import live
from sparkwright.operations.live import Live


class Terminal(StringIO):
    """Standard error on a terminal of 40 columns."""

    tty = True

    def fileno(self) -> int:
        return 2

    def isatty(self) -> bool:
        return self.tty

    def message(self) -> str:
        """What was written since the last look, without colours."""
        result = self.getvalue()
        self.seek(0)
        self.truncate()
        return click.unstyle(result)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    result = Terminal()
    # pytest puts back the real one before each test.
    monkeypatch.setattr(live, "sys", SimpleNamespace(stderr=result))
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((40, 24)))
    monkeypatch.setenv("TERM", "xterm")
    return result


@pytest.fixture
def shown() -> Live:
    """Lines beside which nothing is logged."""
    result = Live()
    result._listening = True
    return result


def test_a_line_for_each_host(terminal: Terminal, shown: Live) -> None:
    shown.show("a", "1 of 5 GB")
    assert terminal.message() == "    [a]  1 of 5 GB\n"
    shown.show("spark-2", "x" * 100)
    # The line before is erased, and no line is longer than the terminal is wide.
    assert terminal.message() == f"\r    [a]        1 of 5 GB\n    [spark-2]  {'x' * 24}\n"


def test_a_host_that_is_done_leaves(terminal: Terminal, shown: Live) -> None:
    shown.show("a", "x")
    shown.remove("a")
    shown.remove("a")
    shown.show("b", "y")
    assert terminal.message() == "    [a]  x\n\r    [b]  y\n"


def test_the_log_pushes_them_down(terminal: Terminal) -> None:
    logger, handler = logging.getLogger("pyinfra"), logging.StreamHandler(terminal)
    logger.addHandler(handler)
    shown = Live()
    try:
        shown.show("a", "x")
        shown.show("a", "y")
        terminal.message()
        logger.warning("a line of the log")
        assert terminal.getvalue().startswith("\r\x1b[1A\x1b[J")
        assert terminal.message() == "\ra line of the log\n"
        assert len(handler.filters) == 1
    finally:
        logger.removeHandler(handler)


@pytest.mark.parametrize(("term", "on"), [("xterm", True), ("dumb", False), ("", False)])
def test_only_on_a_terminal(
    term: str, on: bool, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    assert Live().on is on
    terminal.tty = False
    assert not Live().on
