"""The fetch program against a fake hub: what ends up on the disk, and what is asked."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.host.fetch.conftest import HOST, MIB, Fetch
from tests.host.fetch.fake_hub import COMMIT, TOKEN, Fault

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.mark.parametrize("downloader", ["hf_transfer", "http"])
def test_fetches_all_and_verifies(fetch: Fetch, downloader: str) -> None:
    code, said = fetch.run(downloader=downloader)
    assert code == 0, said
    fetch.assert_whole()
    assert "hf_transfer ended" not in said
    named = "hf_transfer and plain HTTP" if downloader == "hf_transfer" else "plain HTTP"
    assert f"/s) by {named}, 0 B kept" in said
    # hf_transfer sends no User-Agent of ours: it really moved the large files, and only when asked.
    fetched_by = {
        hit.headers.get("user-agent")
        for hit in fetch.hub.hits
        if hit.where == "cdn" and hit.path.endswith(ONE)
    }
    assert fetched_by == ({None} if downloader == "hf_transfer" else {"sparkwright"})
    assert stat.S_IMODE((fetch.destination / ONE).stat().st_mode) == 0o644
    assert stat.S_IMODE((fetch.destination / "tokenizer").stat().st_mode) == 0o755
    progress = fetch.progress()
    assert (progress["state"], progress["files_done"], progress["files_total"]) == ("done", 6, 6)
    assert (
        progress["bytes_done"] == progress["bytes_total"] == sum(map(len, fetch.hub.files.values()))
    )


def test_second_run_asks_nothing(fetch: Fetch) -> None:
    assert fetch.run()[0] == 0
    before = len(fetch.hub.hits)
    code, said = fetch.run()
    assert code == 0
    assert said.startswith("already complete")
    assert len(fetch.hub.hits) == before
    assert fetch.progress()["state"] == "done"


def test_hf_transfer_begins_at_the_beginning(fetch: Fetch) -> None:
    """Its queue keeps its order, or hashing, which follows in order, begins when it should end."""
    fetch.hub.add("large.safetensors", random.Random(1).randbytes(12 * MIB), lfs=True)
    chunk, connections = 64 << 10, 4
    code, said = fetch.here(
        downloader="hf_transfer", chunk_size=chunk, max_connections=2 * connections
    )
    assert code == 0, said
    starts = [
        int(hit.headers["range"].removeprefix("bytes=").partition("-")[0])
        for hit in fetch.hub.hits
        if hit.where == "cdn" and hit.path.endswith("large.safetensors")
    ]
    assert len(starts) > 12 * MIB // chunk
    near = 4 * connections * chunk
    late = [place for place, start in enumerate(starts) if abs(place * chunk - start) > near]
    assert len(late) <= len(starts) // 20, starts


@pytest.mark.parametrize("downloader", ["hf_transfer", "http"])
def test_kill_and_resume(fetch: Fetch, downloader: str) -> None:
    fetch.hub.rate = 500_000
    fetch.hub.add(ONE, fetch.hub.files[ONE] * 2, lfs=True)
    process = fetch.start(downloader=downloader)
    fetch.hub.wait_for(lambda: _allocated(fetch.stage / "parts") > 1_500_000)
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()
    assert not fetch.destination.exists()
    fetch.hub.rate = 0
    time.sleep(0.2)
    fetch.hub.hits.clear()
    code, said = fetch.run(downloader=downloader)
    assert code == 0, said
    fetch.assert_whole()
    kept, total = fetch.progress()["bytes_kept"], fetch.progress()["bytes_total"]
    assert kept > 1_400_000
    assert f"kept {kept} bytes" in said
    assert fetch.hub.sent() == total - kept


def _allocated(directory: Path) -> int:
    """Return the bytes that the parts really have on the disk."""
    total = 0
    for part in directory.rglob("*.part") if directory.exists() else ():
        with contextlib.suppress(FileNotFoundError):  # finished meanwhile
            total += part.stat().st_blocks * 512
    return total


def test_terminate_keeps_the_parts(fetch: Fetch) -> None:
    fetch.hub.rate = 500_000
    process = fetch.start()
    fetch.hub.wait_for(lambda: _allocated(fetch.stage / "parts") > 300_000)
    process.terminate()
    _, said = process.communicate(timeout=10)
    assert process.returncode == 75
    assert "stopped by a signal" in said.splitlines()[-1]
    assert fetch.progress()["state"] == "failed"
    fetch.hub.rate = 0
    code, said = fetch.run()
    assert code == 0
    assert fetch.progress()["bytes_kept"] > 300_000
    fetch.assert_whole()


@pytest.mark.parametrize("downloader", ["hf_transfer", "http"])
def test_corrupt_byte_is_set_aside_and_fetched_again(fetch: Fetch, downloader: str) -> None:
    fetch.hub.faults = [Fault(ONE, times=1, corrupt_at=1000)]
    if downloader == "hf_transfer":  # its first request is a probe of one byte
        fetch.hub.faults = [Fault(ONE, times=2, corrupt_at=1000)]
    code, said = fetch.here(downloader=downloader)
    assert code == 0, said
    assert f"{ONE}: expected sha256" in said
    assert "set aside" in said
    fetch.assert_whole()


def test_corrupt_twice_is_an_error_with_nothing_in_place(fetch: Fetch) -> None:
    fetch.hub.faults = [Fault(TWO, times=10_000, corrupt_at=500)]
    code, said = fetch.here()
    assert code == 1
    last = said.splitlines()[-1]
    assert TWO in last
    assert "wrong content twice: expected sha256" in last
    assert fetch.progress()["message"] == last
    assert not fetch.destination.exists()
    # The good files of that run are kept for the next.
    fetch.hub.faults = []
    assert fetch.here()[0] == 0
    assert fetch.progress()["bytes_kept"] >= 2 * MIB
    fetch.assert_whole()


def test_corrupt_small_file(fetch: Fetch) -> None:
    fetch.hub.faults = [Fault("vocab.json", corrupt_at=3)]
    code, said = fetch.here()
    assert code == 0
    assert "tokenizer/vocab.json: expected git blob" in said
    fetch.assert_whole()


@pytest.mark.parametrize(
    ("downloader", "fault"),
    [
        ("hf_transfer", Fault("", times=6, cut_after=50_000)),
        ("hf_transfer", Fault("", times=3, status=503)),
        ("http", Fault("", times=6, cut_after=50_000)),
        ("http", Fault("", times=3, status=500)),
        ("http", Fault(ONE, times=1, status=403)),  # a signature that has run out
    ],
    ids=["hf-cut", "hf-503", "http-cut", "http-500", "http-403"],
)
def test_transient_faults(fetch: Fetch, downloader: str, fault: Fault) -> None:
    fetch.hub.faults = [fault]
    code, said = fetch.here(downloader=downloader)
    assert code == 0, said
    assert all(f.times == 0 for f in fetch.hub.faults)
    fetch.assert_whole()


def test_retry_after_is_honoured(fetch: Fetch) -> None:
    fetch.hub.faults = [Fault(ONE, status=429, headers={"Retry-After": "1"})]
    began = time.monotonic()
    code, said = fetch.here(downloader="http")
    assert code == 0, said
    assert time.monotonic() - began > 1.0
    assert "answers HTTP 429" in said


def test_a_cut_leaves_whole_pages_only(fetch: Fetch) -> None:
    fetch.hub.faults = [Fault(ONE, times=10_000, cut_after=100_001)]
    assert fetch.here(downloader="http", retries=0)[0] == 75
    fetch.hub.faults = []
    code, said = fetch.here(downloader="http")
    assert code == 0, said
    assert "set aside" not in said
    fetch.assert_whole()


def test_a_chunk_that_takes_longer_than_a_stall_is_waited_for(fetch: Fetch) -> None:
    """A slow line: its bytes come all the time, and hf_transfer reports whole chunks only."""
    fetch.hub.rate = 100_000
    code, said = fetch.here(downloader="hf_transfer", chunk_size=256 << 10, stall=2)
    assert code == 0, said
    assert "hf_transfer ended" not in said


@pytest.mark.parametrize("downloader", ["hf_transfer", "http"])
def test_stall_is_noticed(fetch: Fetch, downloader: str) -> None:
    fetch.hub.faults = [Fault(ONE, times=2, hang_after=70_000)]
    code, said = fetch.here(downloader=downloader, stall=0.5)
    assert code == 0, said
    # What else this machine receives meanwhile is taken for a slow line, five times.
    busy = downloader == "hf_transfer" and "arrived for 2.5 s" in said
    assert busy or "arrived for 0.5 s" in said
    fetch.assert_whole()


def test_server_without_ranges(fetch: Fetch) -> None:
    fetch.hub.ranges = False
    fetch.hub.faults = [Fault(ONE, times=2, cut_after=100_000)]
    code, said = fetch.here(downloader="hf_transfer")
    assert code == 0, said
    assert "supports no ranges" in said
    fetch.assert_whole()
    assert fetch.progress()["bytes_done"] == fetch.progress()["bytes_total"]


def test_endless_503_is_temporary(fetch: Fetch) -> None:
    fetch.hub.faults = [Fault(ONE, times=10_000, status=503)]
    code, said = fetch.here(retries=1)
    assert code == 75
    assert "answers HTTP 503, after 2 tries" in said.splitlines()[-1]


def test_hub_out_of_reach_is_temporary(fetch: Fetch) -> None:
    code, said = fetch.run(endpoint="http://127.0.0.1:9", retries=1)
    assert code == 75
    assert "http://127.0.0.1:9 is unreachable" in said.splitlines()[-1]
    assert "Traceback" not in said


# Who may fetch


def _token(fetch: Fetch, token: str) -> dict[str, object]:
    path = fetch.root / "token"
    path.write_text(token, encoding="utf-8")
    path.chmod(0o600)
    return {"token_file": str(path), "allow_token_over_http": True}


def test_gated_without_and_with_tokens(fetch: Fetch) -> None:
    fetch.hub.gated = True
    code, said = fetch.here()
    assert code == 1
    assert "is gated and no token was sent" in said.splitlines()[-1]
    assert f"{fetch.hub.endpoint}/org/model" in said.splitlines()[-1]
    code, said = fetch.here(**_token(fetch, "hf_noaccess"))
    assert code == 1
    assert "account has no access" in said.splitlines()[-1]
    code, said = fetch.here(**_token(fetch, TOKEN), downloader="hf_transfer")
    assert code == 0, said
    fetch.assert_whole()
    # The token went to the hub and never to the CDN, nor did the one in the environment.
    with_token = {hit.where for hit in fetch.hub.hits if "authorization" in hit.headers}
    assert with_token == {"hub"}
    assert not any("from_the_environment" in str(hit.headers) for hit in fetch.hub.hits)
    assert TOKEN not in said


def test_gated_hub_without_cdn(fetch: Fetch) -> None:
    """Where the hub itself gives the bytes, hf_transfer needs the token too."""
    fetch.hub.gated, fetch.hub.redirects = True, False
    code, said = fetch.here(**_token(fetch, TOKEN), downloader="hf_transfer")
    assert code == 0, said
    assert "hf_transfer ended" not in said
    fetch.assert_whole()


def test_token_is_not_sent_unencrypted(fetch: Fetch) -> None:
    code, said = (
        fetch.here(**_token(fetch, TOKEN), **{})
        if False
        else fetch.here(token_file=_token(fetch, TOKEN)["token_file"])
    )
    assert code == 0
    assert "the token is not sent" in said
    assert not any("authorization" in hit.headers for hit in fetch.hub.hits)


def test_wrong_token(fetch: Fetch) -> None:
    code, said = fetch.here(**_token(fetch, "hf_mistyped"))
    assert code == 1
    assert "rejects the token (HTTP 401)" in said.splitlines()[-1]
    assert "hf_mistyped" not in said


def test_private_and_unknown_repository(fetch: Fetch) -> None:
    fetch.hub.private = True
    code, said = fetch.here()
    assert code == 1
    assert "has no org/model" in said
    assert "HF_TOKEN" in said
    fetch.hub.private = False
    code, said = fetch.here(repo="org/typo")
    assert code == 1
    assert "has no org/typo" in said


def test_unknown_commit_and_file(fetch: Fetch) -> None:
    code, said = fetch.here(revision="1" * 40)
    assert code == 1
    assert f"has no commit {'1' * 40}" in said
    files = fetch.hub.listing()
    files[0]["path"] = "gone.json"
    code, said = fetch.here(files=files)
    assert code == 1
    assert "org/model/gone.json does not exist at commit" in said


def test_locked_size_differs(fetch: Fetch) -> None:
    files = fetch.hub.listing()
    next(f for f in files if f["path"] == ONE)["size"] += 1
    code, said = fetch.here(files=files)
    assert code == 1
    assert f"{ONE} has {2 * MIB} bytes" in said
    assert "lock the model again" in said


# Disk


def test_too_little_space_is_said_before_the_first_byte(fetch: Fetch) -> None:
    code, said = fetch.here(headroom=1 << 50)
    assert code == 1
    assert "must stay free" in said.splitlines()[-1]
    assert fetch.hub.sent() == 0


def test_what_shall_stay_free_stays_free_when_something_else_fills_the_disk(
    fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch.hub.rate = 100_000
    looks = iter([1 << 40, 1 << 40])
    real = shutil.disk_usage

    def shrinking(path: Any) -> Any:
        return real(path)._replace(free=next(looks, 4096))

    monkeypatch.setattr(shutil, "disk_usage", shrinking)
    code, said = fetch.here(headroom=8192)
    assert code == 1
    assert "something else fills it" in said
    assert not fetch.destination.exists()
    monkeypatch.undo()
    fetch.hub.rate = 0
    code, said = fetch.here()
    assert code == 0, said
    assert "kept" in said
    fetch.assert_whole()


def test_full_disk(fetch: Fetch) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root for a small file system of its own")
    small = fetch.root / "models"
    small.mkdir()
    request = fetch.request()
    # The file system is filled behind the program's back, once it has looked at the free space.
    script = (
        f"mount -t tmpfs -o size=6m tmpfs {small} && "
        f"(while ! ls {small}/org--model/.staging-*/parts/*.part; do sleep 0.01; done;"
        f" head -c 5m /dev/zero > {small}/other) >/dev/null 2>&1 & "
        f"sleep 0.3; exec {sys.executable} -I -S {HOST}/fetch.py"
        f" --runtime {fetch.runtime} {request}"
    )
    fetch.hub.rate = 800_000
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "is full. Free some space" in done.stderr.splitlines()[-1]


# What lies there already


def test_changed_missing_linked_and_extra_files_are_mended(fetch: Fetch) -> None:
    assert fetch.here()[0] == 0
    target = fetch.destination
    (target / ONE).write_bytes(b"x" + fetch.hub.files[ONE][1:])
    os.utime(target / TWO)  # touched, content still good
    (target / "config.json").unlink()
    (target / "tokenizer").rename(fetch.root / "elsewhere")
    (target / "tokenizer").symlink_to(fetch.root / "elsewhere")
    (target / "small.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", encoding="utf-8"
    )
    (target / "mine.txt").write_text("mine", encoding="utf-8")
    fetch.hub.hits.clear()
    code, said = fetch.here()
    assert code == 0, said
    fetch.assert_whole()
    assert not (target / "tokenizer").is_symlink()
    assert (target / "mine.txt").read_text(encoding="utf-8") == "mine"
    assert "left alone: mine.txt" in said
    assert "small.safetensors is a Git LFS pointer" in said
    assert f"{ONE}: expected sha256" in said
    fetched = {Path(hit.path).name for hit in fetch.hub.hits if hit.sent}
    assert fetched == {ONE, "config.json", "vocab.json", "small.safetensors"}
    assert fetch.here()[1].splitlines()[-1].startswith("already complete")


def test_directory_without_receipt_is_adopted_after_hashing(fetch: Fetch) -> None:
    for path, content in fetch.hub.files.items():
        (fetch.destination / path).parent.mkdir(parents=True, exist_ok=True)
        (fetch.destination / path).write_bytes(content)
    code, said = fetch.here()
    assert code == 0, said
    assert fetch.hub.sent() == 0
    assert fetch.here()[1].startswith("already complete")


def test_power_cut_zeros_are_found_by_the_hash(fetch: Fetch) -> None:
    parts = fetch.stage / "parts"
    parts.mkdir(parents=True)
    (parts / f"{ONE}.part").write_bytes(bytes(2 * MIB))  # looks whole: no holes
    code, said = fetch.here()
    assert code == 0, said
    assert f"{ONE}: expected sha256" in said
    fetch.assert_whole()


def test_pointer_in_the_repository_is_refused(fetch: Fetch) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 99\n"
    fetch.hub.add("model.safetensors", pointer)
    code, said = fetch.here()
    assert code == 1
    assert "model.safetensors is a Git LFS pointer in the repository itself" in said
    assert not fetch.destination.exists()


def test_linked_destination_is_refused(fetch: Fetch) -> None:
    fetch.destination.parent.mkdir(parents=True)
    fetch.destination.symlink_to(fetch.root)
    code, said = fetch.here()
    assert code == 1
    assert "is a symlink" in said


def test_second_run_at_once_names_the_first(fetch: Fetch) -> None:
    fetch.hub.rate = 200_000
    first = fetch.start()
    fetch.hub.wait_for(lambda: fetch.hub.sent() > 0)
    code, said = fetch.run(state_dir=str(fetch.root / "other-state"))
    assert code == 75
    assert f"process {first.pid} " in said.splitlines()[-1]
    fetch.hub.rate = 0
    _, said = first.communicate(timeout=30)
    assert first.returncode == 0, said
    fetch.assert_whole()


# Requests


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"revision": "main"}, "must be a full commit"),
        ({"downloader": "carrier-pigeon"}, "must be hf_transfer, xet or http"),
        ({"endpoint": "ftp://x"}, "not a valid http(s) address"),
        ({"destination": "relative"}, "absolute path"),
        ({"files": [{"path": "../x", "size": 1, "blob_id": "0" * 40}]}, "would be outside"),
        ({"files": [{"path": "x", "size": 1}]}, "could not be verified"),
        (
            {"files": [{"path": "x", "size": "1", "blob_id": "0" * 40}]},
            "files.size: '1' is not of type int",
        ),
        ({"chunk_size": 100_000}, "chunk_size"),
    ],
)
def test_bad_request_is_one_message(fetch: Fetch, changes: dict[str, object], message: str) -> None:
    code, said = fetch.here(**changes)
    assert code == 1
    assert message in said
    assert len(said.splitlines()) == 1
    assert not fetch.hub.hits


def test_commit_is_checked(fetch: Fetch) -> None:
    assert fetch.here()[0] == 0
    receipt = fetch.destination / ".sparkwright-receipt.json"
    text = receipt.read_text(encoding="utf-8")
    receipt.write_text(text.replace(COMMIT, "2" * 40), encoding="utf-8")
    code, said = fetch.here()
    assert code == 0
    assert "already complete" not in said
    assert receipt.read_text(encoding="utf-8") == text


def test_files_of_another_revision_are_shared_by_hard_link(fetch: Fetch) -> None:
    assert fetch.here()[0] == 0
    other = fetch.destination.with_name("0" * 40)
    fetch.destination.rename(other)
    (other / TWO).write_bytes(b"changed after it was verified")
    fetch.hub.hits.clear()
    code, said = fetch.here()
    assert code == 0, said
    fetch.assert_whole()
    assert f"{ONE}: shared with revision 000000000000" in said
    assert (fetch.destination / ONE).samefile(other / ONE)
    # What no receipt speaks for is fetched, and the other revision's file stays its own.
    assert {Path(hit.path).name for hit in fetch.hub.hits if hit.sent} == {TWO}
    assert (other / TWO).read_bytes() == b"changed after it was verified"
    # The receipt speaks for the shared files too.
    fetch.hub.hits.clear()
    assert fetch.here()[1].startswith("already complete")
    assert fetch.hub.sent() == 0
    # Losing one revision loses nothing of the other.
    shutil.rmtree(other)
    fetch.assert_whole()
