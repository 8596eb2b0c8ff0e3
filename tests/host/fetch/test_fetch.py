"""The fetch program and a fake hub: resulting files, requests, and the use of a proxy."""

import contextlib
import os
import random
import re
import shutil
import stat
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sparkwright.config.settings import HostSettings
from sparkwright.host.fetch import transfer, verify
from sparkwright.host.fetch.holes import Part
from sparkwright.plan.uplink import environment
from tests.host.fetch.conftest import MIB, Fetch
from tests.host.fetch.fake_hub import COMMIT, TOKEN, Fault
from tests.host.serving import Handler, listening

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.mark.parametrize("downloader", ["hf_transfer", "http"])
def test_every_file_is_fetched_and_verified(fetch: Fetch, downloader: str) -> None:
    output = fetch.complete(apart=True, downloader=downloader)
    assert "hf_transfer ended" not in output
    named = "hf_transfer and plain HTTP" if downloader == "hf_transfer" else "plain HTTP"
    assert f"/s) by {named}, 0 B kept" in output
    # Only sparkwright sends its User-Agent, so hf_transfer moved the large files, and only on
    # request.
    fetched_by = {
        hit.headers.get("user-agent")
        for hit in fetch.hub.hits
        if hit.where == "cdn" and hit.path.endswith(ONE)
    }
    assert fetched_by == ({None} if downloader == "hf_transfer" else {"sparkwright"})
    assert stat.S_IMODE((fetch.destination / ONE).stat().st_mode) == 0o644
    assert stat.S_IMODE((fetch.destination / "tokenizer").stat().st_mode) == 0o755
    progress = fetch.progress()
    assert progress["state"] == "done"
    assert (
        progress["bytes_done"] == progress["bytes_total"] == sum(map(len, fetch.hub.files.values()))
    )


def test_hf_transfer_starts_at_the_first_byte(fetch: Fetch) -> None:
    """hf_transfer's queue keeps its order; without this order, hashing would begin only at the end
    of the download.
    """
    fetch.hub.add("large.safetensors", random.Random(1).randbytes(12 * MIB), lfs=True)
    chunk, connections = 64 << 10, 4
    fetch.complete(downloader="hf_transfer", chunk_size=chunk, max_connections=2 * connections)
    starts = [
        int(hit.headers["range"].removeprefix("bytes=").partition("-")[0])
        for hit in fetch.hub.hits
        if hit.where == "cdn" and hit.path.endswith("large.safetensors")
    ]
    assert len(starts) > 12 * MIB // chunk
    # A chunk that comes too early does no harm: hashing waits for the first missing chunk. With two
    # threads the lag was 51 of 192 chunks; with one thread at most 7, and 14 beside 3 busy loops.
    arrived: set[int] = set()
    missing = lag = 0
    for asked, start in enumerate(starts, 1):
        arrived.add(start)
        while missing in arrived:
            missing += chunk
        lag = max(lag, asked - missing // chunk)
    assert lag <= len(starts) // 5, starts


def _allocated(directory: Path) -> int:
    """Return the bytes that the parts really have on the disk."""
    total = 0
    for part in directory.rglob("*.part") if directory.exists() else ():
        with contextlib.suppress(FileNotFoundError):  # the fetch has finished
            total += part.stat().st_blocks * 512
    return total


def test_sigterm_keeps_the_parts(fetch: Fetch) -> None:
    fetch.hub.rate = 500_000
    process = fetch.start()
    fetch.hub.wait_for(lambda: _allocated(fetch.stage / "parts") > 300_000)
    process.terminate()
    _, output = process.communicate(timeout=10)
    assert process.returncode == 1
    assert "stopped by a signal" in output.splitlines()[-1]
    assert fetch.progress()["state"] == "failed"
    fetch.hub.rate = 0
    kept = re.search(r"(\d+) bytes .* are already on this host", fetch.complete(apart=True))
    assert kept is not None
    assert int(kept[1]) > 300_000


def test_a_corrupt_small_file_is_fetched_again(fetch: Fetch) -> None:
    fetch.hub.faults = [Fault("vocab.json", corrupt_at=3)]
    fetch.complete("tokenizer/vocab.json: expected git blob")


def test_an_expired_signature_is_replaced(fetch: Fetch) -> None:
    fetch.hub.faults = [Fault(ONE, status=403)]
    fetch.complete()
    assert fetch.hub.faults[0].times == 0


def test_retry_after_is_honoured(fetch: Fetch) -> None:
    fetch.hub.faults = [Fault(ONE, status=429, headers={"Retry-After": "1"})]
    began = time.monotonic()
    output = fetch.complete(downloader="http")
    assert time.monotonic() - began > 1.0
    assert "answers HTTP 429" in output


def test_a_cut_connection_leaves_only_whole_pages(fetch: Fetch) -> None:
    fetch.hub.faults = [Fault(ONE, times=10_000, cut_after=100_001)]
    assert fetch.here(downloader="http", retries=0)[0] == 1
    fetch.hub.faults = []
    assert "set aside" not in fetch.complete(downloader="http")


def test_a_fetch_waits_for_a_slow_chunk(fetch: Fetch) -> None:
    """On a slow connection bytes arrive all the time, but hf_transfer reports only whole
    chunks.
    """
    fetch.hub.rate = 100_000
    output = fetch.complete(downloader="hf_transfer", chunk_size=512 << 10, stall=4)
    assert "hf_transfer ended" not in output


@pytest.mark.parametrize("downloader", ["hf_transfer", "http"])
def test_a_stall_is_detected(fetch: Fetch, downloader: str) -> None:
    fetch.hub.faults = [Fault(ONE, times=2, hang_after=70_000)]
    output = fetch.complete(downloader=downloader, stall=0.5)
    # With other traffic on this machine, the program waits five times as long: 2.5 s.
    busy = downloader == "hf_transfer" and "arrived for 2.5 s" in output
    assert busy or "arrived for 0.5 s" in output


def test_hashing_does_not_delay_a_download(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(*args: Any) -> Any:
        fetch.hub.wait_for(lambda: "/last.safetensors" in {hit.path for hit in fetch.hub.hits})
        return real(*args)

    fetch.hub.add("last.safetensors", random.Random(1).randbytes(MIB // 2), lfs=True)
    real = verify.entry
    monkeypatch.setattr(verify, "entry", entry)
    fetch.complete()


def test_a_server_without_ranges_is_read_from_the_beginning(fetch: Fetch) -> None:
    fetch.hub.ranges = False
    fetch.hub.faults = [Fault(ONE, times=2, cut_after=100_000)]
    fetch.complete("supports no ranges", downloader="hf_transfer")
    assert fetch.progress()["bytes_done"] == fetch.progress()["bytes_total"]


def test_bytes_of_hf_transfer_are_hashed_after_its_end(
    fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hf_transfer 0.1.9 writes answers that exceed their range, over bytes that were already
    hashed.
    """

    def fetched(_: Any, __: str, part: Part, *___: Any) -> None:
        with part.path.open("r+b") as file:
            file.write(bytes(part.file.size))

    monkeypatch.setattr(transfer.Libraries, "_fetch", fetched)
    # Hashing found the right bytes on the disk.
    monkeypatch.setattr(verify.Follower, "sha256", lambda self: self._part.file.sha256)
    name = "model-00001-of-00002.safetensors"
    fetch.complete(f"{name}: expected sha256", downloader="hf_transfer", chunk_size=MIB)


def test_overwritten_bytes_are_hashed_a_second_time(fetch: Fetch) -> None:
    """A hub that sends good bytes, ends, and sends the file again with other bytes at its start."""
    fetch.hub.ranges, name = False, "large.safetensors"
    fetch.hub.add(name, random.Random(1).randbytes(4 * MIB), lfs=True)
    fetch.hub.faults = [Fault(name, cut_after=3 * MIB), Fault(name), Fault(name, corrupt_at=200)]
    fetch.complete(f"{name}: expected sha256", chunk_size=4 * MIB, backoff=0.3)


def test_endless_503_is_a_temporary_failure(fetch: Fetch) -> None:
    fetch.hub.faults = [Fault(ONE, times=10_000, status=503)]
    fetch.fail("answers HTTP 503, after 2 tries", retries=1)


def test_an_unreachable_hub_is_a_temporary_failure(fetch: Fetch) -> None:
    nowhere = "http://127.0.0.1:9"
    fetch.fail(f"{nowhere} is unreachable", apart=True, endpoint=nowhere, retries=1)


# Access


def _token(fetch: Fetch, token: str) -> dict[str, Any]:
    path = fetch.root / "token"
    path.write_text(token, encoding="utf-8")
    path.chmod(0o600)
    return {"token_file": str(path), "allow_token_over_http": True}


def test_hf_transfer_sends_the_token_to_a_gated_hub_without_a_cdn(fetch: Fetch) -> None:
    """If the hub sends the bytes, hf_transfer also needs the token."""
    fetch.hub.gated, fetch.hub.redirects = True, False
    output = fetch.complete(**_token(fetch, TOKEN), downloader="hf_transfer")
    assert "hf_transfer ended" not in output


def test_the_token_is_not_sent_unencrypted(fetch: Fetch) -> None:
    fetch.complete("the token is not sent", token_file=_token(fetch, TOKEN)["token_file"])
    # The environment does not contain the token either.
    assert not any("authorization" in hit.headers for hit in fetch.hub.hits)


def test_an_unknown_commit_or_file_fails_the_fetch(fetch: Fetch) -> None:
    fetch.fail(f"has no commit {'1' * 40}", revision="1" * 40)
    assert len(fetch.hub.hits) == 1  # a single request for all files
    files = fetch.hub.listing()
    files[0]["path"] = "gone.json"
    fetch.fail("org/model/gone.json does not exist at commit", files=files)


def test_a_size_that_differs_from_the_lock_fails_the_fetch(fetch: Fetch) -> None:
    files = fetch.hub.listing()
    next(f for f in files if f["path"] == ONE)["size"] += 1
    fetch.fail(f"{ONE} has {2 * MIB} bytes", "lock the model again", files=files)


# Disk


def test_headroom_stays_free_when_another_program_fills_the_disk(
    fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch.hub.rate = 100_000
    looks = iter([1 << 40, 1 << 40])
    real = shutil.disk_usage

    def shrinking(path: Any) -> Any:
        return real(path)._replace(free=next(looks, 4096))

    monkeypatch.setattr(shutil, "disk_usage", shrinking)
    fetch.fail("another program fills the disk", headroom=8192)
    assert not fetch.destination.exists()
    monkeypatch.undo()
    fetch.hub.rate = 0
    fetch.complete("kept")


# Existing files


def test_changed_missing_linked_and_extra_files_are_repaired(fetch: Fetch) -> None:
    fetch.complete()
    target = fetch.destination
    (target / ONE).write_bytes(b"x" + fetch.hub.files[ONE][1:])
    os.utime(target / TWO)  # a new time, and the same content
    (target / "config.json").unlink()
    (target / "tokenizer").rename(fetch.root / "elsewhere")
    (target / "tokenizer").symlink_to(fetch.root / "elsewhere")
    (target / "small.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", encoding="utf-8"
    )
    (target / "mine.txt").write_text("mine", encoding="utf-8")
    fetch.hub.hits.clear()
    output = fetch.complete()
    assert not (target / "tokenizer").is_symlink()
    assert (target / "mine.txt").read_text(encoding="utf-8") == "mine"
    assert "files not in the repository are kept: mine.txt" in output
    assert "small.safetensors is a Git LFS pointer" in output
    assert f"{ONE}: expected sha256" in output
    fetched = {Path(hit.path).name for hit in fetch.hub.hits if hit.sent}
    assert fetched == {ONE, "config.json", "vocab.json", "small.safetensors"}
    fetch.complete(", 0 B fetched ")


def test_a_directory_without_a_receipt_is_adopted_after_hashing(fetch: Fetch) -> None:
    for path, content in fetch.hub.files.items():
        (fetch.destination / path).parent.mkdir(parents=True, exist_ok=True)
        (fetch.destination / path).write_bytes(content)
    fetch.complete()
    assert fetch.hub.sent() == 0
    fetch.complete(", 0 B fetched ")


def test_power_cut_zeros_are_found_by_the_hash(fetch: Fetch) -> None:
    parts = fetch.stage / "parts"
    parts.mkdir(parents=True)
    (parts / f"{ONE}.part").write_bytes(bytes(2 * MIB))  # a part without holes looks complete
    fetch.complete(f"{ONE}: expected sha256")


def test_a_pointer_in_the_repository_is_refused(fetch: Fetch) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 99\n"
    fetch.hub.add("model.safetensors", pointer)
    fetch.fail("model.safetensors is a Git LFS pointer in the repository itself")
    assert not fetch.destination.exists()


def test_a_linked_destination_is_refused(fetch: Fetch) -> None:
    fetch.destination.parent.mkdir(parents=True)
    fetch.destination.symlink_to(fetch.root)
    fetch.fail("is a symlink")


def test_a_simultaneous_run_names_the_first_run(fetch: Fetch) -> None:
    fetch.hub.rate = 200_000
    first = fetch.start()
    fetch.hub.wait_for(lambda: fetch.hub.sent() > 0)
    fetch.fail(f"process {first.pid} ", apart=True, state_dir=str(fetch.root / "other-state"))
    fetch.hub.rate = 0
    _, output = first.communicate(timeout=30)
    assert first.returncode == 0, output
    fetch.assert_whole()


def test_a_receipt_of_another_commit_is_replaced(fetch: Fetch) -> None:
    fetch.complete()
    receipt = fetch.destination / ".sparkwright-receipt.json"
    text = receipt.read_text(encoding="utf-8")
    receipt.write_text(text.replace(COMMIT, "2" * 40), encoding="utf-8")
    fetch.complete()
    assert receipt.read_text(encoding="utf-8") == text


def test_files_of_another_revision_are_shared_by_hard_link(fetch: Fetch) -> None:
    fetch.complete()
    other = fetch.destination.with_name("0" * 40)
    fetch.destination.rename(other)
    (other / TWO).write_bytes(b"changed after it was verified")
    fetch.hub.hits.clear()
    fetch.complete(f"{ONE}: shared with revision 000000000000")
    assert (fetch.destination / ONE).samefile(other / ONE)
    # A file without a receipt is fetched, and the other revision keeps its own file.
    assert {Path(hit.path).name for hit in fetch.hub.hits if hit.sent} == {TWO}
    assert (other / TWO).read_bytes() == b"changed after it was verified"
    # The receipt covers the shared files, too.
    fetch.hub.hits.clear()
    fetch.complete()
    assert fetch.hub.sent() == 0
    # Removal of one revision keeps all files of the other revision.
    shutil.rmtree(other)
    fetch.assert_whole()


DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextmanager
def proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy, and the hosts of its requests; only the proxy leads to ``hub.example`` and its
    CDN.
    """
    asked: list[str] = []

    class Proxy(Handler):
        def do_GET(self) -> None:
            to = urlsplit(self.path)
            asked.append(to.hostname or "")
            headers = {name: value for name, value in self.headers.items() if name != "Host"}
            at = f"http://127.0.0.1:{to.port}{to.path}?{to.query}".rstrip("?")
            request = urllib.request.Request(at, headers=headers, method=self.command)
            try:
                answer = DIRECT.open(request, timeout=10)
            except urllib.error.HTTPError as error:
                answer = error
            body = answer.read()
            dropped = ("connection", "transfer-encoding", "date", "server")
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in dropped}
            self.reply(answer.status, body, kept)

        do_HEAD = do_GET

    with listening(Proxy) as port:
        yield f"http://127.0.0.1:{port}", asked


def test_all_fetches_use_the_proxy(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch.hub.redirects = False
    port = urlsplit(fetch.hub.endpoint).port
    with proxy() as (address, asked):
        settings = HostSettings.model_validate({"services": {}, "http_proxy": address})
        for name, value in environment(settings).items():
            monkeypatch.setenv(name, value)
        fetch.complete(apart=True, endpoint=f"http://hub.example:{port}")
    assert set(asked) == {"hub.example"}
    assert len(asked) >= len(fetch.hub.files)


def test_servers_on_the_lan_bypass_the_proxy(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy() as (address, asked):
        expected = {"services": {}, "http_proxy": address, "hub_endpoint": fetch.hub.endpoint}
        # The hub's own CDN, at another address of this machine.
        settings = HostSettings.model_validate({**expected, "no_proxy": ["127.0.0.2"]})
        for name, value in environment(settings).items():
            monkeypatch.setenv(name, value)
        fetch.complete(apart=True)
    assert asked == []
