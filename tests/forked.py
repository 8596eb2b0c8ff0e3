"""Commands as separate processes, forked off a process that has imported their modules.

Like a started program, a command has its own files, folder, environment, and exit of Python; a fork
saves the imports, which take two thirds of a short command's time. Tests of a command's imports
start the command as a program.
"""

import atexit
import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The first import patches the library for gevent. pyinfra's own command line is left out: its
#: import marks a running command.
_IMPORTED = ("sparkwright.run", "sparkwright.run.session", "sparkwright.cli.deployments",
             "pyinfra_cli.inventory", "roles.serving")  # fmt: skip


def run(
    arguments: Sequence[str], folder: Path, env: Mapping[str, str], stdout: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``sparkwright`` or ``pyinfra`` in a folder, without input, to its end.

    Args:
        stdout: the file for standard output; without it, the output is read.

    Raises:
        TimeoutError: the command takes two minutes.
    """
    server = _server()
    server.settimeout(120)
    output = os.open(stdout, os.O_WRONLY) if stdout else os.memfd_create("stdout")
    files = [output, os.memfd_create("stderr")]
    try:
        socket.send_fds(server, [json.dumps([arguments, str(folder), dict(env)]).encode()], files)
        code = int(server.recv(64))
        texts = ["" if file == output and stdout else _text(file) for file in files]
    except TimeoutError:
        _server.cache_clear()  # the next command must not read this command's answer
        raise
    finally:
        for file in files:
            os.close(file)
    return subprocess.CompletedProcess(arguments, code, *texts)


def _text(file: int) -> str:
    return os.pread(file, os.fstat(file).st_size, 0).decode()


@cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=theirs.fileno(), stdout=subprocess.DEVNULL,
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _next_command() -> list[str]:
    """Answer each request with the exit of its command; return in the process of the command."""
    # gevent replaces these functions later.
    requests, fork, wait = socket.socket(fileno=os.dup(0)), os.fork, os.waitpid
    for name in _IMPORTED:
        import_module(name)
    gc.collect()
    gc.freeze()
    while True:
        request, files, _, _ = socket.recv_fds(requests, 1 << 20, 2)
        if not request:
            os._exit(0)
        if (process := fork()) == 0:
            requests.close()
            command, folder, env = json.loads(request)
            _become(folder, env, files)
            sys.path[0] = "" if command[0] == "sparkwright" else str(Path(sys.executable).parent)
            return list(command)
        for file in files:
            os.close(file)
        requests.send(b"%d" % os.waitstatus_to_exitcode(wait(process, 0)[1]))


def _become(folder: str, env: Mapping[str, str], files: Sequence[int]) -> None:
    import_module("gevent").reinit()
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), *files)):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)


if __name__ == "__main__":
    sys.argv = _next_command()
    if sys.argv[0] == "pyinfra":
        sys.exit(import_module("pyinfra_cli.main").main())
    import_module("sparkwright.cli").main(prog_name="sparkwright")
