"""Data that the program, in a separate bare Python, collects on a host."""

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.service.diagnose import diagnose
from sparkwright.engines import metric_names
from sparkwright.facts import programs
from sparkwright.facts.answers import parse
from sparkwright.host import doctor
from sparkwright.host import doctor as collect
from sparkwright.host.doctor import Mount
from sparkwright.host.lib import files, processes
from sparkwright.host.lib.http import Server
from sparkwright.host.lib.processes import Outcome
from tests.host.doctor.hosts import KEY, Vllm, host, inspected, vllm
from tests.host.programs import program
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import kept_service
from tests.unit.checks.service.builders import RELEASE, facts

cases = Tables(__file__)


def ask(server: Vllm, folder: Path, **changes: Any) -> dict[str, Any]:
    """Answer of the program, which is sent to a separate Python as to a host."""
    secrets = folder / "services/qwen36/secrets.env"
    secrets.parent.mkdir(parents=True, exist_ok=True)
    secrets.write_text(f"VLLM_API_KEY={KEY}\n")
    request = {
        "services_root": str(folder), "models_root": str(folder / "models"), "seconds": 0.1,
        "metric_names": metric_names(),
        "services": {
            "qwen36": ["127.0.0.1", server.port],
        },
        **changes,
    }  # fmt: skip
    done = subprocess.run(
        ["python3", "-IS", "-c", programs.BY_STANDARD_INPUT],
        input=programs.payload(collect, request),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return parse("l", done.stdout.split("\n"), dict[str, Any])


PLANNED = {
    "qwen36": {
        "release": RELEASE, "tag": "t", "names": ["a"], "boot_seconds": 900, "speculates": False,
    }
}  # fmt: skip


def test_a_healthy_host_is_examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host(tmp_path, monkeypatch, [inspected()])
    with vllm() as server:
        server.key = KEY  # llama-server requires the key, too
        answer = ask(server, tmp_path)
    seen = facts({**answer, "planned": PLANNED})
    (service,) = seen.services.values()
    assert (service.health.code, service.unit["ActiveState"]) == (200, "active")
    assert [look["generated"] for look in service.metrics] == [100, 100]
    assert service.container is not None
    assert "131072" in service.container.command
    assert seen.unified
    assert seen.gpu.gpus[0].event_reasons == 0
    assert seen.gpu.gpus[0].clock_mhz == 208
    assert diagnose("spark-1", replace(seen, disks={}, memory={}, kernel=())) == []


def test_a_service_without_right_answers_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host(tmp_path, monkeypatch, [inspected()])
    home = tmp_path / "services/qwen36"
    with vllm() as server:
        record = kept_service("r", "qwen36", tmp_path, port=server.port).record
        files.write(home / "releases/r/release.json", record, 0o640)
        files.point(home / "current", "releases/r")
        answer = ask(server, tmp_path)
    (finding,) = [
        each
        for each in diagnose("spark-1", facts({**answer, "planned": PLANNED}))
        if each.id == "wrong-answer"
    ]
    assert "qwen36: models: the answer has an unexpected form" in finding.observed


def test_no_secret_leaves_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = inspected()
    seen["Config"]["Cmd"] = ["serve", "--api-key", "another-key", f"--x={KEY}", "--token=third"]
    seen["Config"]["Env"] += ["MYSQL_PWD=fourth-1", "DATABASE_URL=postgres://a:fifth-1@b/c"]
    host(tmp_path, monkeypatch, [seen])
    with vllm() as server:
        text = json.dumps(ask(server, tmp_path))
    for secret in (KEY, "another-key", "third", "fourth-1", "fifth-1", "hf_abcdefghijklmnopqrstu"):
        assert secret not in text
    assert "starting with --api-key (hidden)" in text


STRANGERS = {
    "DATABASE_URL": "postgres://app:hunter2secret@db/app",
    "MYSQL_PWD": "open-sesame-1",
    "PLAIN": "a-customer's-name",
}


def test_values_written_by_a_containers_owner_are_not_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = inspected(Id="d" * 64, Name="/wiki", RestartCount=5)
    stranger["Config"] = {
        "Image": "wiki", "Labels": {"sparkwright.release": "b" * 12},
        "Entrypoint": ["wiki"], "Cmd": ["--token=t0ken-of-others", "--admin", "ann@home"],
        "Env": [f"{name}={value}" for name, value in STRANGERS.items()],
    }  # fmt: skip
    stranger["State"]["Error"] = "exec: --token=t0ken-of-others: not found"
    stranger["Mounts"] = [{"Type": "bind", "Source": str(tmp_path), "Destination": "/private"}]
    host(tmp_path, monkeypatch, [inspected(), stranger])
    with vllm() as server:
        answer = ask(server, tmp_path)
    text = json.dumps(answer)
    for word in (*STRANGERS, *STRANGERS.values(), "t0ken-of-others", "ann@home", "/private"):
        assert word not in text
    (seen,) = answer["others"]
    assert (seen["name"], seen["restarts"], seen["image"]) == ("wiki", 5, "wiki")


STRUCK = safe_load(Path(__file__).with_name("struck.yaml").read_text())


@pytest.mark.parametrize(("line", "shown"), STRUCK.items())
def test_a_secret_is_redacted_by_its_name(line: str, shown: str) -> None:
    assert collect.struck([line], []) == [shown]


def test_a_private_key_is_redacted_over_lines_and_a_secret_in_the_next_word() -> None:
    begin, end = (f"-----{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END"))
    lines = ["before", f"key: {begin}", "Proc-Type: 4,ENCRYPTED", "MIIE", "w0==", end, "after"]
    assert collect.struck(lines, []) == ["before", "key: (hidden)", "after"]
    assert collect.struck([begin, "MIIE"], []) == ["(hidden)"]
    assert collect.struck(["a\n".join(lines)], [])[0].endswith("a\nafter")
    arguments = ["serve", "--requirepass", "hunter2", "--api-key", "--port", "1"]
    assert collect.struck(arguments, []) == [*arguments[:2], "(hidden)", *arguments[3:]]


@pytest.mark.timeout(60)
@cases("text")
def test_a_hostile_log_of_a_mebibyte_is_searched_in_seconds(text: str) -> None:
    began = time.monotonic()
    collect.struck([text * ((1 << 20) // len(text)), f"{text}{' ' * (1 << 20)}"], [])
    assert time.monotonic() - began < 20


def test_a_service_that_hangs_is_given_time_and_then_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host(tmp_path, monkeypatch, [inspected()])
    monkeypatch.setattr(collect, "_PATIENCE", 0.5)
    monkeypatch.setattr(collect, "_LOOK", 0.1)
    with vllm() as server:
        server.values["num_requests_running"] = 2.0
        item = Server("127.0.0.1", server.port)
        began = time.monotonic()
        looks = list(collect.looks(item, 0.1, metric_names()))
        assert time.monotonic() - began > 0.5
        assert not collect.moved(looks[0], looks[-1])
        server.step = 5.0
        began = time.monotonic()
        looks = list(collect.looks(item, 0.1, metric_names()))
        assert time.monotonic() - began < 0.4
        assert collect.moved(looks[0], looks[-1])


def test_a_host_with_failing_programs_is_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = host(tmp_path, monkeypatch, [])
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing")
    for name in ("docker", "systemctl", "journalctl", "nvidia-smi"):
        program(programs, name, "echo broken >&2; exit 1")
    answer = ask(Vllm(port=9), tmp_path)
    ids = {item.id for item in diagnose("spark-1", facts({**answer, "planned": PLANNED}))}
    assert {"docker-silent", "gpu-silent"} <= ids


def test_a_hanging_command_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "slow", "exec sleep 30")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    text = processes.run("slow", timeout=0.2)
    assert text == Outcome(None, err="slow: no answer within 0 s")


def test_files_that_are_not_weights_are_reported(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (tmp_path / "blob").write_text("x")
    (model / "out.safetensors").symlink_to(tmp_path / "blob")
    (model / "dead.json").symlink_to(model / "nothing")
    (model / "in.json").symlink_to(model / "config.json")
    (model / "config.json").write_text("{}")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n"
    (model / "pointer.safetensors").write_text(pointer)
    seen = collect.weights(model, "/model")
    assert seen == Mount(
        str(model), "/model", ("dead.json", "out.safetensors"), ("pointer.safetensors",)
    )


@cases("last", "kernel", "expected")
def test_the_end_of_the_previous_boot_is_read(
    last: str, kernel: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = f"""case "$*" in
*MESSAGE_ID=*) printf '{last}' ;;
*"-k"*"-b -1"*) {kernel} ;;
*) exit 3 ;;
esac"""
    program(tmp_path / "bin", "journalctl", asked)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    assert doctor.boot_before() == expected
