"""Fetching onto file systems that do not distinguish holes from data.

The kernel's ramfs is an example, like NFS before 4.2, SMB and exFAT: SEEK_DATA takes a hole for
data. ramfs does not report its size. A file system's answers simulate holes made of zeros, as in
ZFS with compression (openzfs#18402).
"""

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkwright.host.fetch import holes
from sparkwright.host.fetch.holes import Part
from sparkwright.host.fetch.peer_files import Revision
from sparkwright.host.fetch.request import PAGE, FetchFile
from sparkwright.host.lib import disks, files
from tests.host.fetch.conftest import MIB, Fetch

ONE = "model-00001-of-00002.safetensors"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")


@pytest.fixture
def ramfs(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "models"
    path.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "ramfs", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


def part_of(path: Path, size: int = 2 * MIB) -> Part:
    return Part(path, FetchFile(ONE, size), lambda *_: None)


def _part(fetch: Fetch) -> Path:
    return fetch.stage / "parts" / f"{ONE}.part"


def test_the_file_system_itself_is_tested_for_holes(ramfs: Path, tmp_path: Path) -> None:
    assert holes.reported(tmp_path)
    assert not holes.reported(ramfs)
    assert disks.kind(str(ramfs)) == "ramfs"
    assert disks.kind(str(ramfs / "not/there/yet")) == "ramfs"


@pytest.mark.parametrize("answer", ["all data", "all hole", "no such question"])
def test_implausible_answers_of_a_file_system_count_as_no_holes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    def ranges(_: int, size: int) -> list[tuple[int, int]]:
        if answer == "no such question":
            raise OSError(errno.EINVAL, "Invalid argument")
        return [(0, size)] if answer == "all hole" else []

    monkeypatch.setattr(holes, "of", ranges)
    assert not holes.reported(tmp_path)


def test_a_full_disk_is_reported_with_the_missing_bytes(
    fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert holes.reported(fetch.root)
    fetch.fail("must stay free there, but only", headroom=1 << 60)
    assert fetch.hub.sent() == 0


def test_zfs_is_queried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each query for holes would make ZFS write open files to its disks."""
    monkeypatch.setattr(disks, "kind", lambda _: "zfs")
    assert not holes.reported(tmp_path)


def test_plain_http_fetches_whole_files(fetch: Fetch, ramfs: Path) -> None:
    """Download libraries write without a map of written ranges, and are not used on this file
    system.
    """
    fetch.complete("does not distinguish holes from data", downloader="hf_transfer")
    by = {hit.headers.get("user-agent") for hit in fetch.hub.hits if hit.where == "cdn"}
    assert by == {"sparkwright"}
    assert disks.kind(str(fetch.destination)) == "ramfs"
    fetch.complete(", 0 B fetched ")


def test_after_a_kill_only_the_rest_is_fetched(fetch: Fetch, ramfs: Path) -> None:
    fetch.hub.rate = 400_000
    process = fetch.start()
    fetch.hub.wait_for(lambda: fetch.hub.sent() > 2 * MIB)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)
    size = len(fetch.hub.files[ONE])
    lacking = part_of(_part(fetch), size).missing()
    assert 0 < holes.total(lacking) < size
    content = _part(fetch).read_bytes()
    written = bytearray(content)
    for start, end in lacking:
        written[start:end] = fetch.hub.files[ONE][start:end]
    assert bytes(written) == fetch.hub.files[ONE]  # every byte in the map is written
    fetch.hub.rate = 0
    fetch.hub.hits.clear()
    assert "expected sha256" not in fetch.complete("are already on this host")
    assert fetch.hub.sent() < sum(map(len, fetch.hub.files.values())) - 512 * 1024


def test_a_part_without_a_map_is_fetched_from_the_start(fetch: Fetch, ramfs: Path) -> None:
    """An earlier version left a part that looks complete, without a record of its written
    ranges."""
    _part(fetch).parent.mkdir(parents=True)
    _part(fetch).write_bytes(bytes(2 * MIB))
    assert "expected sha256" not in fetch.complete()


def test_a_changed_map_only_costs_a_second_fetch(fetch: Fetch, ramfs: Path) -> None:
    part = part_of(_part(fetch))
    part.prepare(mapped=True)
    part.map.write_bytes(b"\1" * (2 * MIB // PAGE))
    fetch.complete(f"{ONE}: expected sha256")


def test_peers_get_the_ranges_of_the_map(ramfs: Path) -> None:
    """Without a map of written ranges, the whole part would count as present, and a peer would get
    zeros.
    """
    revision = Revision(str(ramfs), ("org--model",), "a" * 40)
    stage = ramfs / "org--model" / f".staging-{revision.name}"
    part = part_of(stage / "parts" / "weights.part", 4 * MIB)
    part.prepare(mapped=True)
    with part.writing("") as write:
        write(memoryview(bytes(MIB)), MIB)
    index = revision.find(("weights",))
    assert index is not None
    with index:
        assert index.available() == [(MIB, 2 * MIB)]


def test_only_whole_pages_are_marked(tmp_path: Path) -> None:
    size = 3 * PAGE + 10
    part = part_of(tmp_path / "part", size)
    part.prepare(mapped=True)
    with part.writing("") as write:
        write(memoryview(bytes(PAGE)), 100)
        assert part.missing() == [(0, size)]
        write(memoryview(bytes(PAGE + 10)), 2 * PAGE)
    assert part.missing() == [(0, 2 * PAGE)]
    with part.writing("") as write:
        write(memoryview(bytes(2 * PAGE)), 0)
    assert part.missing() == []


@pytest.fixture
def one_mode(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """All files have one mode and refuse another mode, as on exFAT, FAT and SMB."""
    mode, real, make = [0o755], os.open, os.mkdir
    before = os.umask(0)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    monkeypatch.setattr(os, "open", lambda path, flags, _=0, **m: real(path, flags, mode[0], **m))
    monkeypatch.setattr(os, "mkdir", lambda path, _=0, **more: make(path, mode[0], **more))
    yield mode
    os.umask(before)


def test_a_file_system_without_modes_is_accepted(fetch: Fetch, one_mode: list[int]) -> None:
    """One mode for all files is accepted if only root may write them."""
    fetch.complete()


def test_a_world_writable_file_system_is_refused(fetch: Fetch, one_mode: list[int]) -> None:
    one_mode[0] = 0o777
    code, output = fetch.here()
    assert code != 0, output
    assert not fetch.destination.exists()


@pytest.mark.parametrize(("mode", "fits"), [(0o700, True), (0o755, False), (0o600, True)])
def test_no_secret_is_written_where_all_files_are_readable(
    one_mode: list[int], tmp_path: Path, mode: int, fits: bool
) -> None:
    one_mode[0] = mode
    if fits:
        files.write(tmp_path / "secret", "text", 0o600)
    else:
        with pytest.raises(PermissionError):
            files.write(tmp_path / "secret", "text", 0o600)
        assert not (tmp_path / "secret").exists()
