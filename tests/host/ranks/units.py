"""Ranks of a cluster on addresses of this machine, each under a fake of systemd's unit."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkwright.host.lib.ranks import STATE, RankConfig
from sparkwright.host.service import Service
from tests.host.programs import program
from tests.host.proxy.haproxy import until
from tests.unit.builders import kept_service

#: Addresses that no other program of this machine uses.
NETWORK = "127.77.{}.{}"
OLD, NEW = "a" * 12, "b" * 12
KEY = "sk-of-the-ranks"
SYSTEMCTL = """#!/bin/sh
echo "$@" >> "{place}/systemctl"
case $1 in show) echo ActiveState=active ;; esac
"""
#: Program that records its process and its release.
ENGINE = 'echo "$$ $(basename $(readlink -f .))" >> "$0"; exec sleep 1000'
#: Program of the head's engine, which answers; it returns no token while its folder has a file
#: `stuck`.
ANSWERING = """
import http.server, os, sys, time
from pathlib import Path
place, port = Path(sys.argv[1]), int(sys.argv[2])
with place.open("a") as file:
    file.write(f"{os.getpid()} {Path('.').resolve().name}\\n")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(b"vllm:generation_tokens_total 0\\n")
    def do_POST(self):
        while place.with_name("stuck").exists():
            time.sleep(0.1)
        self.answer(b"{}")
    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
PROGRAM = """
import sys
from pathlib import Path
from sparkwright.host.lib import systemd
from sparkwright.host.ranks import follower, head, link
systemd.UNITS = Path(sys.argv[2])
for module in (follower, head, link):
    module.PATIENCE, module.BEAT = 2.0, 0.2
follower.LINGER, head.HEAD_LINGER = 0.6, 0.2
head.IDLE, head.TOKEN, head.SILENT = 0.3, 0.5, 2.0
from sparkwright.host.ranks import rank
sys.exit(rank.main("run", sys.argv[1]))
"""


def _engine(folder: Path, number: int, answers_at: int | None) -> tuple[str, ...]:
    if number == 0 and answers_at is not None:
        return (sys.executable, "-c", ANSWERING, str(folder), str(answers_at))
    return ("/bin/sh", "-c", ENGINE, str(folder))


class Unit:
    """One rank and the work of its unit, which ends the engine and restarts the rank."""

    def __init__(self, folder: Path, service: Service, config: RankConfig, key: str = KEY) -> None:
        self.place, self.service, self.config = folder, replace(service, rank=config), config
        self.home = Path(service.home)
        self.codes: list[int] = []
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        (folder / "units").mkdir(parents=True)
        program(folder / "bin", "systemctl", SYSTEMCTL.format(place=folder))
        program(folder / "bin", "journalctl", "")
        (self.home / "releases").mkdir(parents=True)
        for secrets in {self.service.rank_secrets, self.service.secrets}:
            Path(secrets).write_text(f"SPARKWRIGHT_RANKS={key}\nVLLM_API_KEY=sk-of-clients\n")
        self.stage(OLD)
        (self.home / "current").symlink_to(f"releases/{OLD}")

    def stage(self, release: str) -> None:
        """Prepare a release."""
        folder = self.home / "releases" / release
        folder.mkdir()
        (folder / "unit.service").write_text(f"unit of {release}")
        (folder / "release.json").write_text(replace(self.service, release=release).record)

    def start(self) -> None:
        """Start the rank, and restart it at each end."""
        self._stopped.clear()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the rank, as `systemctl stop` does."""
        self._stopped.set()
        self.cut()
        if self._thread:
            self._thread.join(10)

    def cut(self, sign: int = signal.SIGKILL) -> None:
        """Send a signal to every process of the unit at once."""
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, sign)

    def kill_engine(self) -> None:
        """Kill only the engine."""
        os.kill(self.engines[-1][0], signal.SIGKILL)

    @property
    def engines(self) -> list[tuple[int, str]]:
        """Process and release of every engine that was started, oldest first."""
        path = self.place / "engines"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(int(line.split()[0]), line.split()[1]) for line in lines]

    @property
    def runs(self) -> bool:
        """Whether the rank's last engine is alive."""
        try:
            text = Path(f"/proc/{self.engines[-1][0]}/stat").read_text()
        except (OSError, IndexError):
            return False
        return not text.rpartition(") ")[2].startswith("Z")

    @property
    def began(self) -> int:
        """Start time of the rank's last engine, in the kernel's ticks."""
        text = Path(f"/proc/{self.engines[-1][0]}/stat").read_text()
        return int(text.rpartition(")")[2].split()[19])

    @property
    def state(self) -> dict[str, Any]:
        """The rank's own report."""
        path = self.home / STATE
        return dict(json.loads(path.read_text())) if path.exists() else {}

    @property
    def forgiven(self) -> int:
        """Number of ends that systemd must not count."""
        path = self.place / "systemctl"
        return path.read_text().count("reset-failed") if path.exists() else 0

    def _keep(self) -> None:
        while not self._stopped.is_set():
            current = self.home / "current/release.json"
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(current), str(self.place / "units")],
                env={**os.environ, "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}"},
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.codes.append(self._process.wait())
            self.cut()
            self._stopped.wait(0.2)


class Cluster:
    """All ranks of a service."""

    def __init__(
        self, folder: Path, ranks: int = 2, port: int = 29501, answers_at: int | None = None
    ) -> None:
        net = 1 + os.getpid() % 250
        addresses = tuple(NETWORK.format(net, 11 + number) for number in range(ranks))
        self.units = [
            Unit(
                folder / f"host-{number}",
                kept_service(
                    OLD,
                    "chat",
                    folder / f"host-{number}",
                    port=answers_at or 1,
                    served_names=("chat",),
                    boot_seconds=600 if answers_at is None else 10,
                    metric_names={},
                ),
                RankConfig(
                    number=number,
                    hosts=tuple(f"spark-{number + 1}" for number in range(ranks)),
                    addresses=addresses,
                    port=port,
                    command=_engine(folder / f"host-{number}/engines", number, answers_at),
                ),
            )
            for number in range(ranks)
        ]
        self.head, self.followers = self.units[0], self.units[1:]

    @property
    def address(self) -> tuple[str, int]:
        """Address of the head's program."""
        return self.head.config.addresses[0], self.head.config.port + 1

    def start(self) -> None:
        """Start every rank."""
        for unit in self.units:
            unit.start()

    def stop(self) -> None:
        """Stop every rank."""
        for unit in self.units:
            unit.stop()

    @property
    def session(self) -> str | None:
        """The common session of all ranks; None without a common session."""
        states = [unit.state for unit in self.units]
        sessions = {state.get("session") for state in states}
        serving = all(state.get("step") == "serving" for state in states)
        return sessions.pop() if serving and len(sessions) == 1 else None

    def whole(self, before: str | None = None) -> str:
        """Wait until all ranks serve one new session."""
        until(lambda: self.session not in (None, before) and all(unit.runs for unit in self.units))
        result = self.session
        assert result
        return result
