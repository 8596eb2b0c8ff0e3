"""A receipt: what its check finds by size and time, and what only hashing finds."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host import verify_models as rehash
from sparkwright.host.lib import receipt

COMMIT = "a" * 40


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    (directory / "sub").mkdir(parents=True)
    files = {}
    for name in ("a.bin", "sub/b.bin"):
        (directory / name).write_bytes(b"content")
        found = (directory / name).stat()
        files[name] = {"size": 7, "mtime_ns": found.st_mtime_ns, "sha256": "0" * 64}
    document = {"version": 1, "repo": "o/m", "endpoint": "x", "commit": COMMIT, "files": files}
    (directory / ".sparkwright-receipt.json").write_text(json.dumps(document), encoding="utf-8")
    return directory


def test_good(model: Path) -> None:
    assert receipt.check(str(model), COMMIT) is None
    assert receipt.check(str(model.parent / "none"), COMMIT) == "is missing"


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        ("printf cont > a.bin", "a.bin has 4 bytes, but 7 in the receipt"),
        ("touch -d @1 a.bin", "a.bin was changed after it was verified"),
        ("rm sub/b.bin", "sub/b.bin is missing"),
        ("mv a.bin c.bin; ln -s c.bin a.bin", "a.bin is not a regular file"),
        ("rm .sparkwright-receipt.json", "has no receipt"),
        ("echo [] > .sparkwright-receipt.json", "has no receipt"),
    ],
)
def test_harm(model: Path, harm: str, fault: str) -> None:
    subprocess.run(["sh", "-c", harm], cwd=model, check=True)
    assert receipt.check(str(model), COMMIT) == fault


def test_other_commit_and_linked_directory(model: Path) -> None:
    assert receipt.check(str(model), "b" * 40) == f"has commit {COMMIT}"
    link = model.parent / "link"
    link.symlink_to(model)
    assert receipt.check(str(link), COMMIT) == "is not a directory"


def test_takes_milliseconds(model: Path) -> None:
    began = time.perf_counter()
    for _ in range(20):
        receipt.check(str(model), COMMIT)
    assert time.perf_counter() - began < 0.2


def test_hashing_again_finds_what_size_and_time_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "nice", lambda _: 0)  # for good, and this process has other tests
    content = {"a.bin": b"a" * 5000, "folder/b.bin": b"b" * 70}
    entries: dict[str, Any] = {}
    for name, data in content.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
        found = (tmp_path / name).stat()
        entries[name] = {
            "size": found.st_size,
            "mtime_ns": found.st_mtime_ns,
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    note = {"version": 1, "repo": "o/m", "endpoint": "", "commit": "c", "files": entries}
    (tmp_path / receipt.NAME).write_text(json.dumps(note))
    request = (str(tmp_path), str(tmp_path / "nowhere"))
    answer = rehash.main(request)
    assert answer[str(tmp_path)].wrong == ()
    assert answer[str(tmp_path)].bytes == 5070
    assert answer[str(tmp_path / "nowhere")].wrong == ("it has no receipt",)
    (tmp_path / "a.bin").write_bytes(b"a" * 4999 + b"!")
    os.utime(tmp_path / "a.bin", ns=(0, entries["a.bin"]["mtime_ns"]))
    assert receipt.check(str(tmp_path), "c") is None
    assert rehash.main(request)[str(tmp_path)].wrong == (
        "a.bin has other content than was verified",
    )
    assert receipt.check(str(tmp_path), "c") == "has no receipt"
