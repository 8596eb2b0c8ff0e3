"""Start of a rank: its engine, and the rank's state as recorded on its host."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from sparkwright.host.lib import documents, files, journal, systemd
from sparkwright.host.lib.ranks import SERVING, STATE, WAITING, RankConfig, RankState
from sparkwright.host.lib.records import encode
from sparkwright.host.service import Service

#: Exit codes: started again by systemd, and counted by it as a failed start or not.
AGAIN, FAILED = 0, 1
#: Seconds in which the head tells that its engine ended, and in which a follower waits for that
#: before it says the same of its own: an engine ends when another rank's does.
HEAD_LINGER, LINGER = 1.0, 3.0


class Rank:
    """A head or a follower. Its engine is a child of this process: both are one unit's."""

    def __init__(self, service: Service, rank: RankConfig, key: str, release: str) -> None:
        self._service, self._rank, self._key, self._release = service, rank, key, release
        self._process: subprocess.Popen[bytes] | None = None
        self._file = Path(service.home, STATE)
        state = documents.record(RankState, self._file)
        failures = state.failures if state and state.release == release else 0
        self._state = RankState(rank.number, release, failures=failures)

    def start_engine(self) -> None:
        """Start the engine."""
        self._process = subprocess.Popen(
            self._rank.command,
            cwd=Path(self._service.home, "current"),
            stdin=subprocess.DEVNULL,
        )

    def engine_ended(self) -> str | None:
        """How the engine ended, as text; None while it runs or was not started."""
        code = self._process.poll() if self._process else None
        if code is None:
            return None
        error = journal.error(self._service.unit)
        return f"its engine ended with code {code}{f': {error}' if error else ''}"

    def failed(self, why: str) -> int:
        """Its engine ended by itself, or its cluster's did: the exit code of that."""
        self._state = replace(self._state, failures=self._state.failures + 1, since=0.0)
        self.say(WAITING, why)
        return FAILED

    def again(self, why: str, pause: float = 0.0) -> int:
        """The exit code of an end that systemd does not count: it is not this rank's own."""
        self.say(WAITING, why)
        time.sleep(pause)
        systemd.systemctl("reset-failed", self._service.unit)
        return AGAIN

    def say(self, step: str, *missing: str, session: str = "") -> None:
        """Write down for others on this host, and in the journal, how far it is, when that
        changed."""
        state = replace(self._state, step=step, missing=missing, session=session)
        if state == self._state and self._state.since:
            return
        self._state = replace(state, since=round(time.time(), 1))
        files.write(self._file, json.dumps(encode(self._state)) + "\n", 0o644, durable=False)
        print("; ".join((step, *missing)), flush=True)


def ended(service: Service, rank: RankConfig) -> None:
    """No rank runs: a rank that served does not any more, and a waiting rank names its reason."""
    state = documents.record(RankState, Path(service.home, STATE))
    if state is not None and state.step == SERVING:
        Rank(service, rank, "", state.release).say(WAITING, "the rank's unit has ended")
