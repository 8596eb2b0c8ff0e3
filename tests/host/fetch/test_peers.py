"""Hosts as peers: the peer server and the fetch program, as real processes."""

import base64
import contextlib
import importlib
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from tests.host.fetch.conftest import MIB, Fetch
from tests.host.fetch.fake_hub import COMMIT
from tests.host.peer_sharing import DOCKER, Seed, fetch_from, keys_for, peer_sharing

ONE = "model-00001-of-00002.safetensors"
DIGEST = "a" * 64
BASIC = "Basic " + base64.b64encode(":".join(DOCKER).encode()).decode()


@pytest.fixture
def seed(fetch: Fetch, tmp_path: Path) -> Iterator[Seed]:
    with peer_sharing(Fetch(fetch.hub, tmp_path / "seed")) as item:
        yield item


def test_ranges_that_a_peer_still_fetches_are_read_on_arrival(seed: Seed, leech: Fetch) -> None:
    leech.hub.rate = 80_000
    first = seed.fetch.start()
    second = leech.start(peers=[seed.address], peer_token_file=keys_for(leech.root, seed.address))
    # The leech has bytes of a file that is not complete on the seed yet.
    leech.hub.wait_for(
        lambda: _bytes(leech) > 300_000 and not (seed.fetch.destination / ONE).exists(), 30
    )
    leech.hub.rate = 400_000
    for process in (first, second):
        _, output = process.communicate(timeout=60)
        assert process.returncode == 0, output
    leech.assert_whole()
    copies = leech.hub.sent() / sum(map(len, leech.hub.files.values()))
    assert copies <= 1.05


def _bytes(fetch: Fetch) -> int:
    try:
        return int(fetch.progress()["bytes_peers"])
    except (OSError, ValueError):
        return 0


def test_a_peer_that_dies_midway_is_replaced_and_its_bytes_are_kept(
    seed: Seed, leech: Fetch
) -> None:
    leech.hub.rate = 80_000
    first = seed.fetch.start()
    second = leech.start(peers=[seed.address], peer_token_file=keys_for(leech.root, seed.address))
    leech.hub.wait_for(lambda: _bytes(leech) > 300_000, 30)
    for process in (first, seed.process):
        process.send_signal(signal.SIGKILL)
    first.communicate(timeout=10)
    leech.hub.rate = 0
    _, output = second.communicate(timeout=60)
    assert second.returncode == 0, output
    assert "continuing without it" in output
    leech.assert_whole()
    assert leech.progress()["bytes_peers"] > 300_000


def test_wrong_bytes_of_a_peer_are_set_aside_and_come_from_the_hub(
    seed: Seed, leech: Fetch
) -> None:
    assert seed.fetch.run()[0] == 0
    with (seed.fetch.destination / ONE).open("r+b") as file:
        file.seek(MIB)
        byte = file.read(1)
        file.seek(MIB)
        file.write(bytes([byte[0] ^ 0xFF]))
    assert f"{ONE}: expected sha256" in fetch_from(leech, seed.address)


def test_a_refusing_peer_is_abandoned(seed: Seed, leech: Fetch) -> None:
    assert seed.fetch.run()[0] == 0
    assert "401" in fetch_from(leech, seed.address, key="another")
    assert leech.progress()["bytes_peers"] == 0


def test_an_offline_fetch_contacts_no_server_outside_the_fleet_and_names_missing_files(
    seed: Seed, leech: Fetch
) -> None:
    assert seed.fetch.run()[0] == 0
    (seed.fetch.destination / ONE).unlink()
    before = len(leech.hub.hits)
    keys = keys_for(leech.root, seed.address)
    leech.fail("sparkwright bundle", apart=True, peers=[seed.address], peer_token_file=keys,
               offline=True)  # fmt: skip
    assert len(leech.hub.hits) == before
    assert not leech.destination.exists()


def test_docker_reads_blobs_during_their_download(seed: Seed) -> None:
    stage = seed.fetch.root / "images" / f".staging-{DIGEST}"
    part = stage / "parts" / f"{'b' * 64}.part"
    part.parent.mkdir(parents=True)
    content = bytes(range(256)) * 16384  # 4 MiB
    with part.open("wb") as file:
        file.truncate(len(content))
        file.write(content[: 2 * MIB])
    # A process that looks like a fetch of the remaining bytes.
    alive = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "fetch.py"])
    (stage / "holder.json").write_text(json.dumps({"pid": alive.pid}))
    try:
        connection = seed.connect()
        connection.request(
            "GET", f"/v2/any/image/blobs/sha256:{'b' * 64}", headers={"Authorization": BASIC}
        )
        answer = connection.getresponse()
        assert int(answer.headers["Content-Length"]) == len(content)
        assert answer.read(2 * MIB) == content[: 2 * MIB]
        with part.open("r+b") as file:
            file.seek(2 * MIB)
            file.write(content[2 * MIB :])
        (stage / "files").mkdir()
        part.rename(stage / "files" / ("b" * 64))
        assert answer.read() == content[2 * MIB :]
        connection.close()
    finally:
        alive.kill()
        alive.wait()


def test_a_manifest_is_served_under_its_own_type(seed: Seed) -> None:
    path = seed.fetch.root / "images" / DIGEST / DIGEST
    path.parent.mkdir(parents=True)
    kind = "application/vnd.oci.image.index.v1+json"
    path.write_text(json.dumps({"mediaType": kind}))
    status, text, headers = seed.plain(f"/v2/a/b/manifests/sha256:{DIGEST}", Authorization=BASIC)
    assert (status, headers["Content-Type"]) == (200, kind)
    assert headers["Docker-Content-Digest"] == f"sha256:{DIGEST}"
    assert json.loads(text)["mediaType"] == kind


@pytest.mark.parametrize("tag", ["referrers/sha256:" + "e" * 64, "manifests/sha256-" + "e" * 64])
def test_attestations_are_missing_without_a_delay(seed: Seed, tag: str) -> None:
    """Docker from 29.1 on may request an image's referrers, by both of the registries' routes."""
    began = time.monotonic()
    assert seed.plain(f"/v2/a/b/{tag}", Authorization=BASIC)[0] == 404
    assert time.monotonic() - began < 2


def test_a_limit_makes_threads_wait_as_long_as_their_bytes_take() -> None:
    limit = importlib.import_module("sparkwright.host.fetch.ranges").Limit

    class Clock(Event):
        waited = 0.0

        def wait(self, timeout: float | None = None) -> bool:
            self.waited += timeout or 0.0
            return False

    clock, item = Clock(), limit(1_000_000)
    for _ in range(4):
        item.take(1_000_000, clock)
    # The clock only counts waits. Four requests of a second's bytes each arrive at once and wait
    # 0.5 + 1.5 + 2.5 + 3.5 seconds, since the limit gives a credit of half a second.
    assert clock.waited == pytest.approx(8.0, abs=0.2)
    free, idle = limit(None), Clock()
    free.take(10**12, idle)
    assert idle.waited == 0


def test_earlier_downloads_are_reused(fetch: Fetch) -> None:
    """A plain download, a hub's cache, and a file of the same size with other content."""
    plain, cache = fetch.root / "plain/model", fetch.root / "cache/models--org--model"
    listed = {entry["path"]: entry for entry in fetch.hub.listing()}
    for path, content in fetch.hub.files.items():
        if path == ONE:
            blob = cache / "blobs" / listed[path]["sha256"]
            blob.parent.mkdir(parents=True)
            blob.write_bytes(content)
            link = cache / "snapshots" / COMMIT / path
            link.parent.mkdir(parents=True)
            link.symlink_to(blob)
        else:
            file = plain / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    problems = plain / "small.safetensors"
    problems.write_bytes(problems.read_bytes()[::-1])
    mine = {path: path.read_bytes() for path in plain.rglob("*") if path.is_file()}
    fetch.complete(apart=True, adopt=[str(fetch.root / "pl*"), str(fetch.root / "cache")])
    fetched = {hit.path.rpartition("/")[2] for hit in fetch.hub.hits if hit.where == "cdn"}
    assert fetched == {"small.safetensors"}
    assert {path: path.read_bytes() for path in mine} == mine
    # The bytes exist once, under two names.
    assert (fetch.destination / ONE).samefile(cache / "blobs" / listed[ONE]["sha256"])
    shutil.rmtree(fetch.root / "cache")
    assert (fetch.destination / ONE).read_bytes() == fetch.hub.files[ONE]


def test_a_tls_client_of_a_plain_server_gets_http(seed: Seed) -> None:
    """Docker with containerd's image store tries plain HTTP only after an answer in HTTP."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    hello = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", seed.port), 5) as item:
        item.sendall(outgoing.read())
        answer = b""
        while block := item.recv(4096):
            answer += block
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert time.monotonic() - began < 2
