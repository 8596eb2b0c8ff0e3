"""Start of a rank: its engine, and the rank's recorded state on its host."""

import subprocess
import time
from dataclasses import replace
from pathlib import Path

from sparkwright.host.lib import documents, files, journal, ranks, systemd
from sparkwright.host.service import Service

#: Exit codes. systemd starts the unit again after both, but counts only FAILED as a failed start.
AGAIN, FAILED = 0, 1
#: Seconds for the head to report that its engine ended, and for a follower to wait for this report
#: before it reports its own engine's end: an engine ends when another rank's engine ends.
HEAD_LINGER, LINGER = 1.0, 3.0


class Rank:
    """A head or a follower. The rank's engine is a child of this process, so both belong to one
    unit.
    """

    def __init__(self, service: Service, rank: ranks.RankConfig, key: str, release: str) -> None:
        self._service, self._rank, self._key, self._release = service, rank, key, release
        self._process: subprocess.Popen[bytes] | None = None
        self._file = Path(service.home, ranks.STATE)
        state = documents.record(ranks.RankState, self._file)
        failures = state.failures if state and state.release == release else 0
        self._state = ranks.RankState(rank.number, release, failures=failures)

    def start_engine(self) -> None:
        """Start the engine."""
        current = Path(self._service.home, "current")
        self._process = subprocess.Popen(self._rank.command, cwd=current, stdin=subprocess.DEVNULL)

    def engine_ended(self) -> str | None:
        """Return how the engine ended, as text; None while it runs or before its start."""
        code = self._process.poll() if self._process else None
        if code is None:
            return None
        error = journal.error(self._service.unit)
        return f"the engine ended with code {code}{f': {error}' if error else ''}"

    def failed(self, why: str) -> int:
        """Return the exit code of a failure: the rank's engine, or another engine of its cluster,
        ended by itself.
        """
        self._state = replace(self._state, failures=self._state.failures + 1, since=0.0)
        self.say(ranks.WAITING, why)
        return FAILED

    def again(self, why: str, pause: float = 0.0) -> int:
        """Return the exit code of an end that is not this rank's fault; systemd does not count this
        end.
        """
        self.say(ranks.WAITING, why)
        time.sleep(pause)
        systemd.systemctl("reset-failed", self._service.unit)
        return AGAIN

    def say(self, step: str, *missing: str, session: str = "") -> None:
        """Record the rank's progress in its state file and in the journal, if it changed."""
        state = replace(self._state, step=step, missing=missing, session=session)
        if state == self._state and self._state.since:
            return
        self._state = replace(state, since=round(time.time(), 1))
        files.write_record(self._file, self._state, durable=False)
        print("; ".join((step, *missing)), flush=True)


def ended(service: Service, rank: ranks.RankConfig) -> None:
    """Record that the rank has stopped: a serving rank no longer serves; a waiting rank keeps its
    reason.
    """
    state = documents.record(ranks.RankState, Path(service.home, ranks.STATE))
    if state is not None and state.step == ranks.SERVING:
        Rank(service, rank, "", state.release).say(ranks.WAITING, "the rank's unit has ended")
