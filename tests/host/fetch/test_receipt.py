"""A receipt: what its check finds by size and time, and what only hashing finds."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from sparkwright.host import verify_models as rehash
from sparkwright.host.lib import receipt
from tests.tables import Tables

cases = Tables(__file__)

COMMIT = "a" * 40
SHA256 = hashlib.sha256(b"content").hexdigest()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    (directory / "sub").mkdir(parents=True)
    files = {}
    for name in ("a.bin", "sub/b.bin"):
        (directory / name).write_bytes(b"content")
        result = (directory / name).stat()
        files[name] = {"size": 7, "mtime_ns": result.st_mtime_ns, "sha256": SHA256}
    document = {"version": 1, "repo": "o/m", "endpoint": "x", "commit": COMMIT, "files": files}
    (directory / ".sparkwright-receipt.json").write_text(json.dumps(document), encoding="utf-8")
    return directory


def test_good(model: Path) -> None:
    assert receipt.check(str(model), COMMIT) is None
    assert receipt.check(str(model.parent / "none"), COMMIT) == "is missing"


@cases("harm", "fault")
def test_harm(model: Path, harm: str, fault: str) -> None:
    subprocess.run(["sh", "-c", harm], cwd=model, check=True)
    assert receipt.check(str(model), COMMIT) == fault


def test_other_commit_and_linked_directory(model: Path) -> None:
    assert receipt.check(str(model), "b" * 40) == f"has commit {COMMIT}"
    link = model.parent / "link"
    link.symlink_to(model)
    assert receipt.check(str(link), COMMIT) == "is not a directory"


def test_hashing_again_finds_what_size_and_time_do_not(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "nice", lambda _: 0)  # for good, and this process has other tests
    path, nowhere = str(model), str(model / "nowhere")
    request = (path, nowhere)
    answer = rehash.main(request)
    assert (answer[path].faults, answer[path].bytes) == ((), 14)
    assert answer[nowhere].faults == ("it has no receipt",)
    before = (model / "a.bin").stat().st_mtime_ns
    (model / "a.bin").write_bytes(b"conten!")
    os.utime(model / "a.bin", ns=(0, before))
    assert receipt.check(path, COMMIT) is None
    assert rehash.main(request)[path].faults == ("a.bin has other content than was verified",)
    assert receipt.check(path, COMMIT) == "has no receipt"
