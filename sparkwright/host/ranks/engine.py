"""The engine of a rank, and what is said of the rank on its host."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from sparkwright.host.lib import documents, files, journal, systemd
from sparkwright.host.lib.ranks import SERVING, STATE, WAITING, RankConfig, RankState
from sparkwright.host.lib.records import encode

#: Exit codes: started again by systemd, and counted by it as a failed start or not.
AGAIN, FAILED = 0, 1
#: Seconds in which the head tells that its engine ended, and in which a follower waits for that
#: before it says the same of its own: an engine ends when another rank's does.
HEAD_LINGER, LINGER = 1.0, 3.0


class Engine:
    """The engine's process, which is a child of this one: both are one unit's."""

    def __init__(self, config: RankConfig) -> None:
        self._config = config
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            self._config.command,
            cwd=Path(self._config.home, "current"),
            stdin=subprocess.DEVNULL,
        )

    def ended(self) -> str | None:
        """How it ended, in words; None while it runs or was not started."""
        code = self._process.poll() if self._process else None
        if code is None:
            return None
        said = journal.error(self._config.unit)
        return f"its engine ended with code {code}{f': {said}' if said else ''}"


class Board:
    """What others on this host are told of the rank; and systemd's log."""

    def __init__(self, config: RankConfig, release: str) -> None:
        self._place = Path(config.home, STATE)
        known = documents.record(RankState, self._place)
        failures = known.failures if known and known.release == release else 0
        self._state = RankState(config.number, release, failures=failures)

    @classmethod
    def ended(cls, config: RankConfig) -> None:
        """Nothing runs: a rank that served does not any more, and one that waited says for what."""
        known = documents.record(RankState, Path(config.home, STATE))
        if known is not None and known.step == SERVING:
            cls(config, known.release).say(WAITING, "its unit has ended")

    def failed(self, why: str) -> None:
        """Its engine ended by itself, or its cluster's did."""
        self._state = replace(self._state, failures=self._state.failures + 1, since=0.0)
        self.say(WAITING, why)

    def say(self, step: str, *missing: str, session: str = "") -> None:
        """Write down how far it is, when that changed."""
        found = replace(self._state, step=step, missing=missing, session=session)
        if found == self._state and self._state.since:
            return
        self._state = replace(found, since=round(time.time(), 1))
        files.write(self._place, json.dumps(encode(self._state)) + "\n", 0o644, durable=False)
        print("; ".join((step, *missing)), flush=True)


def forgive(config: RankConfig) -> None:
    """Have systemd not count this end: it is not this rank's own."""
    systemd.systemctl("reset-failed", config.unit)
