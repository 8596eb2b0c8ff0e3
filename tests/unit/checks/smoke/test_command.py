"""`sparkwright smoke` as a user runs it: pyinfra, this machine as its host, a local fake."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from sparkwright.resolve.lock import from_resolution, render_lock
from tests import forked
from tests.host.lab.fake_server import launched, make_model
from tests.host.smoke.deep import CONTEXT, SEQUENCES, WORDS
from tests.unit.builders import ROOT, plan, resolution

_SUDO = """#!/bin/sh
# Whoever runs the tests may have no sudo: the options go, the command runs.
while case "$1" in -*) true;; *) false;; esac; do shift; done
exec "$@"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one host, this machine, with all of sparkwright's files below a folder."""
    (tmp_path / "config.py").write_text((ROOT / "config.py").read_text())
    sudo = tmp_path / "bin/sudo"
    sudo.parent.mkdir()
    sudo.write_text(_SUDO)
    sudo.chmod(0o755)
    (tmp_path / "opt/services/qwen36").mkdir(parents=True)
    return tmp_path


def smoke(project: Path, port: int, *parts: str) -> subprocess.CompletedProcess[str]:
    arguments = {"max_model_len": CONTEXT, "max_num_seqs": SEQUENCES}
    service = {
        "recipe": "qwen36-35b-a3b-heretic-dflash", "port": port, "boot_seconds": 2,
        "served_names": ["tiny", "tiny2"], "arguments": arguments, "proxy": False,
    }  # fmt: skip
    host = {"services": {"qwen36": service}, "services_root": str(project / "opt")}
    (project / "mine.py").write_text(f"boxes = [('@local', {host!r})]\n")
    planned = plan(host["services"])  # type: ignore[arg-type]
    lock = from_resolution([planned.references], resolution(planned), None)
    (project / "fleet.lock").write_text(render_lock(lock))
    path = f"{project / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    return forked.run(["sparkwright", "smoke", "mine.py", *parts], project, environment)


def test_smoke_prints_table_and_meaning_writes_its_file_and_exits(project: Path) -> None:
    model = make_model(project / "model")
    for fault, code in (("", 0), ("blind", 1)):
        with launched(model, *WORDS, FAKE_VLLM_FAULT=fault) as server:
            secrets = project / "opt/services/qwen36/secrets.env"
            secrets.write_text(f"VLLM_API_KEY={server.key}\n")
            done = smoke(project, server.port)
        assert done.returncode == code, done.stdout + done.stderr
        assert server.key not in done.stdout + done.stderr
    lines = [line.split(maxsplit=5) for line in done.stdout.splitlines()]
    verdicts = {line[2]: line[3] for line in lines if line[:2] == ["@local", "qwen36"]}
    assert verdicts.pop("image") == "FAILED"
    assert set(verdicts.values()) == {"ok"}
    assert len(verdicts) == 16
    assert "reason:   the vision tower was skipped while loading" in done.stdout
    saved = json.loads((project / ".sparkwright/smoke/@local-qwen36.json").read_text())
    (image,) = (item for item in saved["checks"] if item["name"] == "image")
    assert (image["verdict"], image["cause"]) == ("failed", "marks")


def test_a_host_that_was_never_deployed_is_reported(project: Path) -> None:
    done = smoke(project, 8000, "--json")
    assert done.returncode == 1
    (load,) = json.loads(done.stdout)
    assert [check["cause"] for check in load["checks"]] == ["absent"]
    assert "the service is not deployed here" in load["checks"][0]["detail"]
