"""Find the phases of an engine's boot in its log, and record their durations for the next boot."""

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from sparkwright.host import release, service
from sparkwright.host.lib import documents, files
from sparkwright.host.lib.processes import run

#: The phase before the engine's first log line, and systemd's message when it restarts a unit.
_FIRST, _AGAIN = "starting", "Scheduled restart job"
_LINE = re.compile(r"(\d+\.\d+) (.*)")


class BootPhases:
    """The phases of one boot of a service.

    Args:
        patterns: pattern of a log line -> the phase that begins there; empty to skip the search.
        since: time when the boot began, seconds since the epoch.
    """

    def __init__(self, service: service.Service, patterns: Mapping[str, str], since: float) -> None:
        self._unit, self._patterns = service.unit, patterns
        self._file = Path(service.home, "boot.json")
        self._began = {_FIRST: since}
        self._before = documents.read(self._file) or {}
        self._longest = service.gate.boot_seconds

    def now(self) -> release.Phase:
        """Return the present phase, with its duration at the last boot and the recipe's limit."""
        arguments = ("--unit", self._unit, "--since", f"@{int(max(self._began.values()))}")
        # Compose writes control characters into each line: without --all, journalctl prints "blob
        # data".
        form = ("--output=short-unix", "--all", "--no-pager", "--quiet")
        journal = run("journalctl", *arguments, *form, timeout=10) if self._patterns else None
        for match in map(_LINE.match, journal.out.splitlines() if journal else ()):
            if match and (at := float(match[1])) >= self._began[_FIRST]:
                if _AGAIN in match[2]:
                    self._began = {_FIRST: at}
                for pattern, name in self._patterns.items():
                    if re.search(pattern, match[2]):
                        self._began.setdefault(name, at)
        name, began = list(self._began.items())[-1]
        seconds = self._before.get(name)
        expected = seconds if isinstance(seconds, (int, float)) else None
        return release.Phase(name, began, expected, self._longest)

    def keep(self, ended: float) -> None:
        """Record how long each phase took, once the service has answered the smoke test.

        Args:
            ended: time of the first answers, in seconds since the epoch.
        """
        if not self._patterns:
            return
        self.now()
        times = [*self._began.items(), ("", ended)]
        took = {name: round(end - began, 1) for (name, began), (_, end) in pairwise(times)}
        with suppress(OSError):  # a full disk: the next boot has no earlier times
            files.write_record(self._file, took, 0o640)
