"""Commands with time limits; a failure is a result and never an exception."""

import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from sparkwright.host.lib.records import dataclass


@dataclass(frozen=True)
class Outcome:
    """A command's outcome.

    Attributes:
        code: exit code; None if the command hung or is missing.
        installed: whether the command exists.
    """

    code: int | None
    out: str = ""
    err: str = ""
    installed: bool = True

    @property
    def ok(self) -> bool:
        """Return whether the command succeeded."""
        return self.code == 0

    @property
    def message(self) -> str:
        """Return the last line of the output, preferably of stderr; empty without output."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1] if lines else ""


#: Largest number of bytes that a command may print.
_MOST = 64 << 20


class Running:
    """A command that runs in parallel with other commands, with English output, which is parsed.

    Args:
        timeout: seconds to wait for the command's end; None for no limit.
        environment: variables in place of this process's own variables.
    """

    def __init__(
        self,
        *arguments: str,
        timeout: float | None = 10,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._words, self._timeout = arguments, timeout
        self._process: subprocess.Popen[bytes] | None = None
        if shutil.which(arguments[0]) is not None:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**(environment or os.environ), "LC_ALL": "C.UTF-8"},
            )

    def outcome(self) -> Outcome:
        """Wait for the end and return the outcome."""
        if self._process is None:
            return Outcome(None, err=f"{self._words[0]} is not installed", installed=False)
        try:
            message = _output(self._process, self._timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()  # don't wait: a process that hangs in the kernel does not die
            return Outcome(None, err=f"{self._words[0]}: no answer within {self._timeout:.0f} s")
        except OverflowError:
            self._process.kill()
            return Outcome(None, err=f"{self._words[0]}: more than {_MOST >> 20} MiB of output")
        out, err = (text.decode(errors="replace") for text in message)
        return Outcome(self._process.returncode, out, err)


def _output(process: subprocess.Popen[bytes], timeout: float | None) -> tuple[bytes, bytes]:
    """Read a command's output like ``communicate``, but bounded: a log may hold texts of any
    length.

    Raises:
        TimeoutExpired: the command takes too long.
        OverflowError: the output is too long.
    """
    until = None if timeout is None else time.monotonic() + timeout
    texts = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in texts:
            selector.register(pipe, selectors.EVENT_READ)  # type: ignore[arg-type]
        while selector.get_map():
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(process.args, timeout or 0)
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, 1 << 16)
                texts[key.fileobj] += chunk  # type: ignore[index]
                if not chunk:
                    selector.unregister(key.fileobj)
                elif sum(map(len, texts.values())) > _MOST:
                    raise OverflowError
    process.wait(None if until is None else max(0.0, until - time.monotonic()))
    for pipe in texts:
        pipe.close()  # type: ignore[union-attr]
    out, err = texts.values()
    return bytes(out), bytes(err)


def run(
    *arguments: str,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a command and return its outcome. By default there is no time limit."""
    return Running(*arguments, timeout=timeout, environment=environment).outcome()


def runs(pid: object, program: str) -> bool:
    """Return whether a process is alive and its command line names a program."""
    try:
        command = Path(f"/proc/{int(pid)}/cmdline").read_bytes()  # type: ignore[call-overload]
    except (OSError, ValueError, TypeError):
        return False
    return program.encode() in command
