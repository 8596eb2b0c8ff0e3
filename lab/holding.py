"""A machine has one lab: one user at a time holds the lab, and other users see the holder.

    with held("tests"):
        ...

The demo, the tests, the benchmarks and `python -m lab up`, `down` and similar commands hold the lab
while they work on the fleet. Processes that the holder starts may use the lab, too: a process is
recognized by its ancestors, also behind sudo, which passes no environment on. A running fleet alone
does not hold the lab: another user may use the fleet.
"""

import contextlib
import datetime as dt
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from lab import lock_file

PROJECT = Path(__file__).resolve().parent.parent
FILE = lock_file.PLACE / "holder"
#: Time for a holder to record itself, or to end on request.
_GRACE_SECONDS = 2.0
_GRANTED = "held\n"
_UNKNOWN = "the lab is held by a process without a record of its purpose"


class LabIsHeldError(SystemExit):
    """Another process holds the lab; the message names the holder, and the exit code is 1."""


class Process(NamedTuple):
    """A process, by its number and its start in clock ticks, since numbers are reused."""

    pid: int
    started: int


@dataclass(frozen=True)
class Holder:
    """Process that holds the lab."""

    checkout: str
    purpose: str
    process: Process
    since: float

    @property
    def message(self) -> str:
        """Message with the lab's holder, the start of the hold, and the next step."""
        pid = self.process.pid
        return (
            f"the lab is held by process {pid} ({self.purpose}) of {self.checkout}"
            f" since {when(self.since)}.\nWait for its end (`python -m lab hold --wait COMMAND`"
            f" waits, then runs a command), or end process {pid}."
        )


@contextlib.contextmanager
def held(
    purpose: str, *, wait: bool = False, file: Path = FILE, process: int | None = None
) -> Iterator[None]:
    """Hold the lab. ``process`` is the working process, by default this process."""
    if file == FILE and os.geteuid() != 0:
        arguments = ["sudo", sys.executable, "-m", "lab", "keep", str(os.getpid()), purpose]
        with kept([*arguments, "--wait"] if wait else arguments):
            yield
        return
    holder = Holder(str(PROJECT), purpose, _process(process or os.getpid()), time.time())
    descriptor = _take(holder, wait, file)
    try:
        yield
    finally:
        if descriptor is not None:
            lock_file.release(descriptor, file)


def holder(file: Path = FILE) -> Holder | None:
    """Current holder of the lab; None if the lab is free, or its holder is not recorded."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(descriptor)
    finally:
        os.close(descriptor)
    return None


def call(command: Sequence[str | Path], *, cwd: Path | None = None) -> int:
    """Run a command to its end, and hold the lab until then; return its exit code, or 130.

    The terminal sends an interrupt to both processes, and the command handles the interrupt. Other
    signals that would end this process are forwarded, and end it once the command has ended.
    """
    got: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def heed(number: int, _frame: object) -> None:
        got.append(number)
        hand_on(number)

    def hand_on(number: int) -> None:
        if child is not None and number != signal.SIGINT:
            with contextlib.suppress(OSError):  # the command may run as root, through sudo
                child.send_signal(number)

    heeded = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heard = [item for item in heeded if signal.getsignal(item) != signal.SIG_IGN]  # as under nohup
    before = [(item, signal.signal(item, heed)) for item in heard]
    try:
        child = subprocess.Popen(command, cwd=cwd)
        for number in tuple(got):  # signals that arrived before the command started
            hand_on(number)
        code = child.wait()
    finally:
        for entry, handler in before:
            signal.signal(entry, handler)
    for number in got:
        if number != signal.SIGINT:
            raise SystemExit(128 + number)
    if got and code:
        return 130
    return code if code >= 0 else 128 - code


# For a user who is not root, a root process holds the lab until this process ends.


@contextlib.contextmanager
def kept(command: Sequence[str]) -> Iterator[None]:
    """Hold the lab through a command that calls ``keep``, and reports its own failures."""
    keeper = subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        if keeper.stdout.readline() != _GRANTED:
            raise LabIsHeldError(1)
        yield
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()


def keep(process: int, purpose: str, *, wait: bool = False, file: Path = FILE) -> None:
    """Hold the lab for another process until standard input ends, which happens when that process
    ends."""
    with held(purpose, wait=wait, file=file, process=process):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process handles Ctrl-C
        sys.stdout.write(_GRANTED)
        sys.stdout.flush()
        sys.stdin.read()


# The lock


def _take(wanted: Holder, wait: bool, file: Path) -> int | None:
    """The descriptor of the lock; None if an ancestor holds the lock."""
    deadline = time.monotonic() + _GRACE_SECONDS
    while True:
        descriptor, taken = lock_file.opened(file), False
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                result = _read(descriptor)
                if result is not None and result.process in _family(wanted.process):
                    return None
                if result is None and time.monotonic() < deadline:
                    time.sleep(0.01)  # the holder is starting or ending
                    continue
                message = result.message if result else _UNKNOWN
                if not wait:
                    raise LabIsHeldError(message) from None
                print(message.splitlines()[0] + "\nwaiting for the holder to end", file=sys.stderr)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            taken = lock_file.in_place(descriptor, file)
            if taken:
                _write(descriptor, wanted)
                return descriptor
        finally:
            if not taken:
                os.close(descriptor)


def _write(descriptor: int, holder: Holder) -> None:
    text = json.dumps(asdict(holder)).encode()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


def _read(descriptor: int) -> Holder | None:
    """Holder recorded in the lock file; None without a living process."""
    try:
        data = json.loads(os.pread(descriptor, 10_000, 0))
        process = Process(*data.pop("process"))
        result = Holder(**data, process=process)
    except (ValueError, TypeError, KeyError):
        return None
    try:
        alive = _process(process.pid) == process and _stat(process.pid)[0] != "Z"
    except OSError:
        return None
    return result if alive else None


def _family(process: Process) -> Iterator[Process]:
    """A process and its ancestors."""
    with contextlib.suppress(OSError):
        while process.pid > 0:
            yield process
            process = _process(int(_stat(process.pid)[1]))


def _process(pid: int) -> Process:
    return Process(pid, int(_stat(pid)[19]))


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the preceding name may have any character."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def when(since: float) -> str:
    """A time and its age."""
    seconds = max(0, round(time.time() - since))
    if seconds < 120:
        age = f"{seconds} s"
    elif seconds < 7200:
        age = f"{seconds // 60} min"
    else:
        age = f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{dt.datetime.fromtimestamp(since):%Y-%m-%d %H:%M:%S} ({age} ago)"
