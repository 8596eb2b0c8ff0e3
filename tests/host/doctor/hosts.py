"""A fake host: small programs on the path and one server, from which host programs read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lab.fakes import GPUS
from tests import docker_api
from tests.host.programs import program
from tests.host.serving import Handler, listening
from tests.unit.checks.service.builders import COMMAND, STARTED

KEY = "sk-a-key-of-this-fleet"


@dataclass
class Vllm:
    """A server's health and counters; ``step`` is added to the tokens at every request.

    With ``key`` the server returns its counters only to requests with this key.
    """

    health: int = 200
    step: float = 0.0
    values: dict[str, float] = field(default_factory=lambda: {"generation_tokens_total": 100.0})
    port: int = 0
    key: str | None = None

    def page(self) -> str:
        """The text of /metrics, with a histogram's buckets as a real server has them."""
        self.values["generation_tokens_total"] += self.step
        lines = [f'vllm:{name}{{engine="0"}} {value}' for name, value in self.values.items()]
        return "\n".join(['vllm:x_bucket{le="1.0"} 5.0', *lines, ""])


class _Handler(Handler):
    message: Vllm

    def do_GET(self) -> None:
        message = self.message
        status, text = (200, message.page()) if self.path == "/metrics" else (message.health, "")
        if text and message.key and self.headers["Authorization"] != f"Bearer {message.key}":
            status, text = 401, ""
        self.reply(status, text.encode())

    def do_POST(self) -> None:
        """Answer with an empty body."""
        self.body()
        self.reply(200)


@contextmanager
def vllm() -> Iterator[Vllm]:
    """A server on a free port."""
    text = Vllm()
    with listening(_Handler, message=text) as text.port:
        yield text


def inspected(**changes: Any) -> dict[str, Any]:
    """Output of ``docker inspect`` of the service's container, from Docker 26."""
    return {
        "Id": "c" * 64, "Name": "/sparkwright-qwen36", "RestartCount": 0, "Created": STARTED,
        "State": {"Running": True, "StartedAt": STARTED, "ExitCode": 0, "OOMKilled": False,
                  "Error": ""},
        "HostConfig": {"RestartPolicy": {"Name": "no"}, "Runtime": "runc",
                       "DeviceRequests": [{"Driver": "nvidia", "Capabilities": [["gpu"]]}]},
        "Config": {"Image": "aeon", "Labels": {"sparkwright.release": "b" * 12},
                   "Entrypoint": ["vllm"], "Cmd": COMMAND[1:],
                   "Env": [f"VLLM_API_KEY={KEY}", "MAX_NUM_BATCHED_TOKENS=32768"]},
        "Mounts": [],
        **changes,
    }  # fmt: skip


def host(folder: Path, monkeypatch: pytest.MonkeyPatch, seen: list[dict[str, Any]]) -> Path:
    """Put the programs on the path. Returns their directory."""
    programs = folder / "bin"
    info = {
        "ServerVersion": "29.1.3", "DockerRootDir": str(folder), "Runtimes": {"nvidia": {}},
    }  # fmt: skip
    program(
        programs,
        "docker",
        f"""case "$1" in
logs) echo 'starting with --api-key {KEY}' ;;
exec) echo 'GPU 0: NVIDIA GB10 (UUID: GPU-1)' ;;
esac""",
    )
    docker_api.serve(folder, monkeypatch, docker_api.containers(seen, info))
    unit = "LoadState=loaded\nActiveState=active\nNRestarts=0\nExecMainStartTimestamp=today"
    program(programs, "systemctl", f'[ "$1" = show ] && printf "{unit}\\n"; true')
    program(programs, "journalctl", "echo 'Authorization: Bearer hf_abcdefghijklmnopqrstu'")
    query = ", ".join(
        GPUS["gb10"].get(name, "?") for name in ("name", "driver_version", "temperature.gpu")
    )
    # A driver that lacks some fields, like older drivers.
    program(
        programs,
        "nvidia-smi",
        f"""case "$1" in
*clocks_event*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2 ;;
*) echo '{query}, 10.20 W, 0 %, 208 MHz, 3003 MHz' ;;
esac""",
    )
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return programs
