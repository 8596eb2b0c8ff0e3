"""Progress line per host that changes in place, where standard error is a terminal."""

import logging
import os
import sys

import click

from sparkwright.text.visible import visible


class Live:
    """The lines of all hosts. Plain lines of the log push them down and never mix with them."""

    def __init__(self) -> None:
        self.on = sys.stderr.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
        self._lines: dict[str, str] = {}
        self._drawn = 0
        self._listening = False

    def show(self, host: str, text: str) -> None:
        """Set a host's line."""
        self._listen()
        self._lines[host] = visible(text)
        self._erase()
        width = max(20, os.get_terminal_size(sys.stderr.fileno()).columns - 1)
        longest = max(len(name) for name in self._lines)
        for name, message in self._lines.items():
            bare = f"    [{name}]{' ' * (longest - len(name))}  {message}"[:width]
            print(click.style(bare, dim=True), file=sys.stderr)
        sys.stderr.flush()
        self._drawn = len(self._lines)

    def remove(self, host: str) -> None:
        """A host is done: its line goes, and the log speaks for it."""
        self._erase()
        self._lines.pop(host, None)

    def _erase(self) -> None:
        if self._drawn:
            sys.stderr.write(f"\r\033[{self._drawn}A\033[J")
            sys.stderr.flush()
            self._drawn = 0

    def _listen(self) -> None:
        """Make room before anything else is logged."""
        if self._listening:
            return
        self._listening = True

        def make_room(_: logging.LogRecord) -> bool:
            self._erase()
            return True

        for handler in logging.getLogger("pyinfra").handlers:
            handler.addFilter(make_room)
