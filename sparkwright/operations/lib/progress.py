"""Progress of hosts: bars and lines that change in place where standard error is a terminal, lines
of the log elsewhere."""

import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from pyinfra.api.host import Host

from sparkwright.host.fetch.progress import FetchProgress
from sparkwright.results.progress import added, figures, line
from sparkwright.text.visible import visible

#: Seconds after which the log repeats a host's present step.
_SILENCE = 30
#: Seconds between two lines of the log with the sum of all fetches.
_SUM_EVERY = 10
#: Name of the bar, and of the log line, with the sum of all fetches.
_SUM = "sum"
#: A child of pyinfra's logger: filters of pyinfra's logger do not apply to its lines.
_LOG = logging.getLogger("pyinfra.sum")


class Live:
    """The bars and lines of all hosts. Log lines push the bars down and never mix with them."""

    def __init__(self) -> None:
        self.on = sys.stderr.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
        #: Function that gets a host's present step, for a command that shows the step instead of
        #: logging it.
        self.notice: Callable[[str, str], None] | None = None
        self._fetches: dict[str, FetchProgress] = {}
        self._rows: dict[str, Any] = {}
        self._logged: dict[str, tuple[object, float]] = {}
        self._summed = float("-inf")
        self._bars: Any = None

    def tell(self, host: Host, text: str, of: object) -> None:
        """Show the host's present step.

        Args:
            of: subject of the step; without a terminal a line is logged if the subject changes.
        """
        before, at = self._logged.get(host.name, (None, 0.0))
        if self.on and not self.notice:
            self._draw(f"[{host.name}]", text)
        elif self.on or of != before or time.monotonic() - at >= _SILENCE:
            if self.notice:
                self.notice(host.name, visible(text))
            else:
                host.log(visible(text))
            self._logged[host.name] = of, time.monotonic()

    def fetching(self, host: Host, seen: FetchProgress) -> None:
        """Show the progress of a host's fetches."""
        self._fetches[host.name] = seen
        rows = {f"[{host.name}]": seen}
        if len(self._fetches) > 1:
            rows[_SUM] = added(self._fetches.values())
        if not self.on:
            host.log(line(seen))
            total = figures(rows[_SUM]) if _SUM in rows else ""
            if total and time.monotonic() - self._summed >= _SUM_EVERY:
                self._summed = time.monotonic()
                _LOG.info("%s: %s", _SUM, total)
            return
        self._remove(_SUM)
        for name, each in rows.items():
            text = figures(each) or each.message
            self._draw(name, text, completed=each.bytes_done, total=each.bytes_total or None)

    def remove(self, host: str) -> None:
        """Remove the row of a finished host; from then on the log reports it."""
        self._erase()
        self._logged.pop(host, None)
        for name in (f"[{host}]", *([_SUM] if self._fetches.pop(host, None) else [])):
            self._remove(name)

    def _remove(self, name: str) -> None:
        if name in self._rows:
            self._bars.remove_task(self._rows.pop(name))

    def _draw(self, name: str, text: str, **share: int | None) -> None:
        self._bars = self._bars or self._made()
        if name not in self._rows:
            self._rows[name] = self._bars.add_task(name, total=None, text="")
        self._bars.update(self._rows[name], text=visible(text), **share)
        self._bars.start()
        self._bars.refresh()

    def _made(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        for handler in logging.getLogger("pyinfra").handlers:
            handler.addFilter(self._erase)

        class Bars(Progress):
            def get_renderables(self) -> Any:
                yield from super().get_renderables()
                yield ""  # pyinfra's spinner has the last line

        return Bars(
            TextColumn("{task.description}", markup=False), BarColumn(8),
            TextColumn("{task.fields[text]}", markup=False), console=Console(file=sys.stderr),
            auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip

    def _erase(self, _: logging.LogRecord | None = None) -> bool:
        """Erase the bars before a line is logged; every line passes the filter."""
        if self._bars:
            self._bars.stop()
        return True


#: Display of this run.
LIVE = Live()
