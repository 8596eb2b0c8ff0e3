"""Phases of an engine's boot, by its log; how long each took is kept for the next boot here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from sparkwright.host.lib import documents, files
from sparkwright.host.lib.processes import run
from sparkwright.host.release import Phase
from sparkwright.host.service import Service

#: The phase before the engine says anything, and what systemd says when it starts a unit again.
_FIRST, _AGAIN = "starting", "Scheduled restart job"
_LINE = re.compile(r"(\d+\.\d+) (.*)")


class BootPhases:
    """The phases of one boot of a service.

    Args:
        patterns: of a line -> the phase that it begins; none where phases are not looked for.
        since: when the boot began, seconds since the epoch.
    """

    def __init__(self, service: Service, patterns: Mapping[str, str], since: float) -> None:
        self._unit, self._patterns = service.unit, patterns
        self._file = Path(service.home, "boot.json")
        self._began = {_FIRST: since}
        self._before = documents.read(self._file) or {}
        self._longest = service.gate.boot_seconds

    def now(self) -> Phase:
        """The present phase, with the time that it took at the last boot here, and the recipe's."""
        arguments = ("--unit", self._unit, "--since", f"@{int(max(self._began.values()))}")
        # Without --all, a line with control characters, as Compose writes each, is "blob data".
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
        return Phase(name, began, expected, self._longest)

    def keep(self, ended: float) -> None:
        """Keep how long each phase took, once the service has given real answers.

        Args:
            ended: when it had, seconds since the epoch.
        """
        if not self._patterns:
            return
        self.now()
        times = [*self._began.items(), ("", ended)]
        took = {name: round(end - began, 1) for (name, began), (_, end) in pairwise(times)}
        with suppress(OSError):  # a full disk: the next boot is compared with none
            files.write_record(self._file, took, 0o640)
