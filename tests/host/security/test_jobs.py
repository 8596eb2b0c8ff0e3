"""A job's secrets, which systemd reads from a socket that only root can open, and which no file
keeps.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkwright.host import jobs
from sparkwright.host.jobs import Job, JobsRequest
from sparkwright.host.lib import sandbox
from tests.host.programs import program

TOKEN = "hf_a-token-of-the-users-own"
#: Fake systemd-run, which loads credentials like systemd and records its arguments.
SYSTEMD_RUN = """#!{python}
import json, os, socket, sys
place, words = {place!r}, sys.argv[1:]
loaded = {{}}
for word in words:
    if word.startswith("--property=LoadCredential="):
        name, _, path = word.partition("=LoadCredential=")[2].partition(":")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            loaded[name] = connection.makefile().read()
        mode = os.stat(os.path.dirname(path)).st_mode & 0o777
        loaded["mode"] = mode
with open(place, "w") as file:
    json.dump({{"words": words, "loaded": loaded}}, file)
sys.exit({code})
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine's directories and its systemd."""
    (tmp_path / "run").mkdir()
    monkeypatch.setattr("sparkwright.host.jobs.RUN", str(tmp_path / "run"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    program(tmp_path / "bin", "systemctl", "exit 0")
    yield tmp_path
    assert list((tmp_path / "run").iterdir()) == []


def _systemd_run(root: Path, code: int = 0) -> Path:
    message = root / "said.json"
    text = SYSTEMD_RUN.format(python=sys.executable, place=str(message), code=code)
    program(root / "bin", "systemd-run", text)
    return message


def _job(root: Path) -> Job:
    request = str(root / "state/job/request.json")
    return Job(
        "sparkwright-fetch-x", "a fetch", ("/bin/true", request),
        files={request: "{}"}, credentials={"hub-token": TOKEN}, writable=(str(root / "models"),),
        properties=("ProtectHome=read-only",),
    )  # fmt: skip


def _files_with(root: Path, text: str) -> list[Path]:
    return [
        path for path in root.rglob("*") if path.is_file() and text.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize("code", [0, 1])
def test_a_token_is_loaded_by_systemd_and_written_to_no_file(root: Path, code: int) -> None:
    text = _systemd_run(root, code)
    request = JobsRequest(start=(_job(root),))
    if code:
        with pytest.raises(SystemExit, match="a fetch"):
            jobs.main(request)
    else:
        jobs.main(request)
    data = json.loads(text.read_text())
    assert data["loaded"] == {"hub-token": TOKEN, "mode": 0o700}
    assert TOKEN not in str(data["words"])
    text.unlink()
    assert _files_with(root, TOKEN) == []
    assert (root / "models").is_dir()


def test_an_unread_token_does_not_block_the_start(root: Path) -> None:
    program(root / "bin", "systemd-run", "exit 0")
    jobs.main(JobsRequest(start=(_job(root),)))
    assert _files_with(root, TOKEN) == []


def test_no_job_starts_without_the_sandbox(root: Path) -> None:
    text = _systemd_run(root)
    jobs.start(_job(root))
    arguments = text.read_text()
    for item in sandbox.properties("ProtectHome=read-only", f"ReadWritePaths={root}/models"):
        assert f'"--property={item}"' in arguments
