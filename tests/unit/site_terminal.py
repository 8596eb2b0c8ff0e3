"""A site with one host, and its `sparkwright chat`, piped or at a terminal."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import Result

from tests.unit.builders import ROOT
from tests.unit.cli.answering import run

KEY = "sk-of-the-test-0123456789"


def written(folder: Path, port: int, address: str = "127.0.0.1", more: str = "") -> Path:
    """A site whose host "box" serves on a port, with the fleet's key."""
    (folder / "inventory").mkdir(parents=True)
    service = f'{{"recipe": "qwen36-35b-a3b-heretic-dflash", "port": {port}{more}}}'
    (folder / "inventory/lab.py").write_text(
        f'_data = {{"ssh_hostname": "{address}", "services": {{"qwen36": {service}}}}}\n'
        'sparks = [("box", _data)]\n'
    )
    key = folder / ".sparkwright/api_key"
    key.parent.mkdir(mode=0o700)
    key.touch(0o600)
    key.write_text(f"{KEY}\n")
    return folder


def environment(folder: Path) -> dict[str, str]:
    """The user's own files; programs in ``bin`` of the site come first."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": path, "TERM": "xterm", "PYTHONPATH": str(ROOT)}


def chat(folder: Path, *arguments: str, message: str = "", **more: str) -> Result:
    """Run the command without a terminal, to its end."""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for name, value in {**environment(folder), **more}.items():
            patched.setenv(name, value)
        return run("chat", *arguments, input=message)


class Terminal:
    """A terminal in which the command runs: typed text, and all output."""

    def __init__(self, process: subprocess.Popen[bytes], end: int) -> None:
        self.process, self._end = process, end
        self.got = ""

    def type(self, message: str) -> None:
        """Press keys; ``\\x03`` is Ctrl-C, ``\\x04`` Ctrl-D."""
        os.write(self._end, message.encode())

    def until(self, message: str, times: int = 1, seconds: float = 30) -> str:
        """Wait for a text on the screen. Return all output since the start."""
        deadline = time.monotonic() + seconds
        while self.got.count(message) < times:
            assert time.monotonic() < deadline, f"no {message!r} in {self.got!r}"
            assert self._read(0.1), f"ended without {message!r}: {self.got!r}"
        return self.got

    def interrupt(self) -> None:
        """Press Ctrl-C while the command waits for a line.

        CPython's readline loses a signal between its prompt and its ``select``.
        """
        stat = Path(f"/proc/{self.process.pid}/stat")
        deadline = time.monotonic() + 30
        while stat.read_text().rpartition(")")[2].split()[0] != "S":
            assert time.monotonic() < deadline, self.got
            time.sleep(0.01)
        self.type("\x03")

    def ended(self, seconds: float = 30) -> int:
        """The command's exit code, once it has ended."""
        deadline = time.monotonic() + seconds
        while self._read(0.1):
            assert time.monotonic() < deadline, self.got
        return self.process.wait(seconds)

    def _read(self, seconds: float) -> bool:
        if select.select([self._end], [], [], seconds)[0]:
            try:
                data = os.read(self._end, 65536)
            except OSError:  # no process holds the other end
                return False
            self.got += data.decode(errors="replace")
            return bool(data)
        return True


def _controlled() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores SIGINT
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def terminal(
    folder: Path,
    *arguments: str,
    program: Sequence[str] = ("-m", "sparkwright"),
    env: Mapping[str, str] | None = None,
) -> Iterator[Terminal]:
    """The command at a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        [sys.executable, *program, *arguments], cwd=folder, stdin=theirs, stdout=theirs,
        stderr=theirs, start_new_session=True, preexec_fn=_controlled,
        env={**environment(folder), **(env or {})},
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
