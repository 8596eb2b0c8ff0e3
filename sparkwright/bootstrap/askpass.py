"""Answers to ssh's prompts: the program in SSH_ASKPASS sends each prompt to this process over a
socket, and prints the answer.

A password is only in the memory of this process, of ssh and of the program: arguments,
environments, files and logs do not contain it.
"""

import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO

from sparkwright.documents import caches
from sparkwright.findings.user_error import Messages

_MESSAGES = Messages(__file__)
#: Function that returns the answer to a prompt, or None. Its second argument is true for a prompt
#: of the program itself, false for a prompt of the ssh to a jump host.
Answer = Callable[[str, bool], str | None]
#: Time limit of a connection and its command, in seconds; each prompt restarts the time.
_SECONDS = 60.0
#: Largest size of an output and of a prompt, in bytes.
_MOST = 64 << 10
#: Longest path of a folder, in bytes: macOS allows 103 bytes in a socket's address, which ends with
#: the socket's name.
_LONGEST_PATH = 103 - len("/sparkwright-12345678/s")
#: Program in SSH_ASKPASS. An answer begins with one extra byte; an empty reply means no answer.
_PROGRAM = """import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(b"%d " % os.getppid() + os.fsencode(sys.argv[2])); s.shutdown(socket.SHUT_WR)
answer = s.makefile("rb").read()
sys.stdout.buffer.write(answer[1:]); sys.exit(not answer)"""


def run(
    command: Sequence[str], answer: Answer = lambda *_: None, stdin: str = "",
    seconds: float = _SECONDS,
) -> tuple[int, str, str]:  # fmt: skip
    """Run an OpenSSH program without a terminal.

    Args:
        answer: function that answers a prompt, in this thread.
        stdin: input of the command on the host.

    Returns:
        The exit code, 255 if the command did not end in time, and both outputs.

    Raises:
        UserError: this user has no folder for the program.
    """
    with _listening() as (listener, environment):
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment, start_new_session=True,
            )  # fmt: skip
        except OSError as missing:
            return 255, "", f"{command[0]}: {missing.strerror}"
        out, err = bytearray(), bytearray()
        threads = [Thread(target=_read, args=pair, daemon=True)
                   for pair in ((process.stdout, out), (process.stderr, err))]  # fmt: skip
        for thread in (*threads, Thread(target=_feed, args=(process.stdin, stdin), daemon=True)):
            thread.start()
        try:
            deadline = time.monotonic() + seconds
            while process.poll() is None and time.monotonic() < deadline:
                if select.select([listener], [], [], 0.05)[0]:
                    _answer_one(listener, answer, process.pid)
                    deadline = time.monotonic() + seconds
            ended = process.poll()
        finally:
            with suppress(ProcessLookupError):  # the group includes ssh's child processes
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for thread in threads:  # a master connection to a jump host may hold the pipes for ever
            thread.join(1)
    late = b"\nno answer" if ended is None else b""
    result, error = out.decode(errors="replace"), (err + late).decode(errors="replace")
    return 255 if ended is None else ended, result, error


@contextmanager
def _listening() -> Iterator[tuple[socket.socket, Mapping[str, str]]]:
    """Yield a socket that only this user can reach, and variables that make ssh use the socket."""
    with (
        tempfile.TemporaryDirectory(prefix="sparkwright-", dir=_parent()) as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        address, program = str(Path(folder, "s")), Path(folder, "ask")
        command = shlex.join((sys.executable, "-IS", "-c", _PROGRAM, address))
        program.write_text(f'#!/bin/sh\nexec {command} "$1"\n', encoding="utf-8")
        program.chmod(0o700)
        listener.bind(address)
        listener.listen()
        # OpenSSH before 8.4 runs SSH_ASKPASS only if DISPLAY is set.
        variables = {"DISPLAY": os.environ.get("DISPLAY", ":"), "SSH_ASKPASS": str(program)}
        yield listener, {**os.environ, **variables, "SSH_ASKPASS_REQUIRE": "force"}


def _parent() -> str:
    """Return a folder in which this user can run programs: a folder may be mounted noexec."""
    cache = str(caches.of_user(""))
    folders = [tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR"), cache]
    for folder in filter(None, folders):
        if len(os.fsencode(folder)) > _LONGEST_PATH:
            continue
        with suppress(OSError):
            if folder == cache:
                Path(cache).mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder) as program:
                Path(program.name).chmod(0o700)
                if os.access(program.name, os.X_OK):
                    return folder
    where = ", ".join(filter(None, folders))
    facts = {"folders": where, "longest": str(_LONGEST_PATH)}
    raise _MESSAGES.refusal("no-programs", "this machine", **facts)


def _answer_one(listener: socket.socket, answer: Answer, program: int) -> None:
    connection, _ = listener.accept()
    with connection, suppress(OSError):  # ssh has ended meanwhile
        connection.settimeout(_SECONDS)
        question = connection.makefile("rb").read(_MOST).decode(errors="replace")
        asking, _, prompt = question.partition(" ")
        if (text := answer(prompt, asking == str(program))) is not None:
            connection.sendall(b"+" + text.encode(errors="surrogateescape") + b"\n")


def _feed(stdin: IO[bytes], text: str) -> None:
    with suppress(OSError), stdin:
        stdin.write(text.encode())


def _read(output: IO[bytes], text: bytearray) -> None:
    while len(text) < _MOST and (part := output.readline(_MOST)):
        text += part
