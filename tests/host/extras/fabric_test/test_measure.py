"""Measurements from a host: commands of ib_write_bw and docker, and parsers of their output."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sparkwright.extras.fabric_test import all_gather
from sparkwright.extras.fabric_test import fabric_measure as program
from sparkwright.host.lib import docker, memory
from tests.host.programs import program as put
from tests.tables import Tables

cases = Tables(__file__)

#: perftest's output.
GATHER = program.Gather("vllm:a", "print(1)", 1 << 20, {"NCCL_IB_HCA": "rocep1s0f1,roceP2p1s0f1",
                                                  "RANK": "1"})  # fmt: skip


def _tool(folder: Path, name: str, text: str) -> None:
    put(folder, name, f'# FAKE\necho "{name} $@" >> {folder}/said\n{text}')


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_a_failed_stream_reports_its_reason(tools: Path) -> None:
    _tool(tools, "ib_write_bw", 'echo "Couldn\'t connect to 192.168.177.11:12000" >&2\nexit 1\n')
    (result,) = program.main(
        program.MeasureRequest(write=(program.Stream("rocep1s0f1", 12000, "192.168.177.11"),))
    ).measured
    assert (result.value, result.fault) == (None, "Couldn't connect to 192.168.177.11:12000")


def test_the_listening_side_is_a_unit_with_a_time_limit(tools: Path) -> None:
    for name in ("systemctl", "systemd-run"):
        _tool(tools, name, "")
    program.main(program.MeasureRequest(listen=(program.Stream("rocep1s0f1", 12000),)))
    assert (tools / "said").read_text().splitlines()[-1] == (
        "systemd-run --quiet --collect --unit=fabric-test-12000.service "
        "--property=RuntimeMaxSec=60 ib_write_bw -d rocep1s0f1 -i 1 -p 12000 -F --report_gbits"
    )


def test_the_test_container_has_the_rights_of_a_rank() -> None:
    arguments = program.container(GATHER)
    assert not {"--privileged", "--volume"} & set(arguments)
    assert arguments[arguments.index("--cap-drop") : arguments.index("--cap-drop") + 4] == [
        "--cap-drop", "ALL", "--cap-add", "IPC_LOCK"
    ]  # fmt: skip
    assert arguments[-4:] == ["vllm:a", "-c", "print(1)", str(1 << 20)]
    given = [arguments[at + 1] for at, word in enumerate(arguments) if word == "--env"]
    assert given == ["NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1", "RANK=1"]


@cases("image", "available", "text", "expected")
def test_a_rank_of_the_gather_prints_its_rate(
    tools: Path, monkeypatch: pytest.MonkeyPatch,
    image: object, available: int, text: str, expected: dict[str, Any],
) -> None:  # fmt: skip
    _tool(tools, "docker", f'[ "$1" = run ] || exit 0\n{text}')
    monkeypatch.setattr(docker, "get", lambda _: image)
    monkeypatch.setattr(memory, "meminfo", lambda: {"MemAvailable": available})
    assert program.gather(GATHER) == program.Measurement("all-gather", **expected)


def test_two_ranks_meet_and_gather() -> None:
    """The script runs over gloo, if this machine has torch."""
    pytest.importorskip("torch")
    script = Path(all_gather.__file__).read_text()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(1 << 20)], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": "29577", "GLOO_SOCKET_IFNAME": "lo"},
        )
        for rank in (0, 1)
    ]  # fmt: skip
    for item in ranks:
        text, _ = item.communicate(timeout=120)
        data = json.loads(text.splitlines()[-1])
        assert data["backend"] == "gloo"
        assert data["gbytes"] > 0
