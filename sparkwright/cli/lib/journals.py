"""Print log lines, and follow the journal of each host over its own ssh process."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass

import click

from sparkwright.cli.lib.ssh import ssh_command
from sparkwright.config.inventory import HostInput
from sparkwright.host.lib.records import encode
from sparkwright.host.logs import LogLine, LogsAnswer, lines_of
from sparkwright.text.timestamps import utc
from sparkwright.text.visible import log_line, visible, visible_json

#: Largest size in bytes of a line of the journal's JSON: longer lines are skipped.
_LONGEST = 1 << 20
#: Characters of systemd's cursors: a cursor from a host becomes an argument in the host's shell.
_CURSOR = re.compile(r"[A-Za-z0-9=;]{1,400}")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


@dataclass(frozen=True)
class Line:
    """A log line of a host's service; ``at`` is in seconds since the epoch, by the host's clock."""

    host: str
    service: str
    at: float
    text: str


def of_host(host: str, lines: Iterable[LogLine]) -> Iterator[Line]:
    """Yield the lines of a host."""
    return (Line(host, line.service, line.at, line.text) for line in lines)


def echo_line(line: Line, *, as_json: bool) -> None:
    """Print a line without control sequences for the terminal."""
    if as_json:
        click.echo(visible_json(json.dumps(encode(line), ensure_ascii=False)))
        return
    time = utc(line.at).astimezone().strftime("%b %d %H:%M:%S")
    origin = click.style(f"{line.host} {visible(line.service, 80)}", fg="cyan")
    click.echo(f"{time} {origin}: {log_line(line.text)}")


def follow(
    hosts: Mapping[str, tuple[HostInput, LogsAnswer]], meant: Callable[[str, str], bool],
    hidden: str, *, as_json: bool,
) -> None:  # fmt: skip
    """Print lines as they come, until every host has disconnected.

    Args:
        hosts: hosts by name, with the lines printed so far.
        meant: function that returns whether to follow a service of a host.
        hidden: a regular expression of lines to leave out; empty for none.
    """
    left_out = re.compile(hidden or "(?!)")
    printing = threading.Lock()
    running: list[subprocess.Popen[bytes]] = []

    def host_lines(name: str) -> None:
        host, answer = hosts[name]
        units = {
            f"sparkwright-{service}.service": service
            for service in answer.service_names
            if _NAME.fullmatch(service) and meant(name, service)
        }
        if not units:
            return
        arguments = ssh_command(host, journalctl(units, answer.cursor), tty=False)
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        running.append(process)
        assert process.stdout
        assert process.stderr
        while raw := process.stdout.readline(_LONGEST):
            with suppress(ValueError, RecursionError):
                entry = json.loads(raw)
                if isinstance(entry, dict):
                    with printing:
                        for line in of_host(name, lines_of(entry, units)):
                            if not left_out.search(line.text):
                                echo_line(line, as_json=as_json)
        errors = process.stderr.read(4000).decode(errors="replace").strip().splitlines()
        last = visible(errors[-1]) if errors else "the connection has ended"
        click.echo(f"{click.style(name, fg='red')}: {last}", err=True)

    pool = ThreadPoolExecutor(max_workers=max(1, len(hosts)))
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the exit ends every ssh
    try:
        for ended in as_completed([pool.submit(host_lines, name) for name in hosts]):
            ended.result()
    finally:
        signal.signal(signal.SIGTERM, before)
        for process in running:
            process.kill()
        pool.shutdown(cancel_futures=True)


def journalctl(units: Mapping[str, str], cursor: str | None) -> list[str]:
    """Return the command that follows units from a cursor, or from now."""
    arguments = ["sudo", "-n", "journalctl", "--follow", "--quiet", "--all", "--output=json"]
    if cursor and _CURSOR.fullmatch(cursor):
        arguments += ["--no-tail", f"--after-cursor={cursor}"]
    else:
        arguments += ["--lines=0"]
    return [*arguments, *(f"--unit={unit}" for unit in units)]
