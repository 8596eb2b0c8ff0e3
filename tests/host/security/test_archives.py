"""An archive that would put a file outside its folder, or fill a host's memory and disk."""

import base64
import gzip
import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from sparkwright.host import install_runtime
from sparkwright.host.install_runtime import RuntimeRequest
from tests.host.security.conftest import UID


def _member(name: str, **changes: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    for key, value in changes.items():
        setattr(member, key, value)
    return member


def _tar(*members: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    return buffer.getvalue()


HOSTILE = {
    "absolute": [_member("/etc/cron.d/evil", size=4)],
    "above": [_member("../../escaped", size=4)],
    "above-in-the-middle": [_member("a/../../../escaped", size=4)],
    "link-out": [_member("a", type=tarfile.SYMTYPE, linkname="/etc"), _member("a/passwd", size=4)],
    "link-within": [_member("a", type=tarfile.SYMTYPE, linkname="b")],
    "hard-link": [_member("a", type=tarfile.LNKTYPE, linkname="/etc/shadow")],
    "device": [_member("a", type=tarfile.BLKTYPE, devmajor=8)],
    "pipe": [_member("a", type=tarfile.FIFOTYPE)],
    "set-uid": [_member("a", mode=0o4755, size=4)],
}


def _request(home: Path, tar: bytes, digest: str | None = None) -> RuntimeRequest:
    return RuntimeRequest(
        home=str(home),
        digest=digest or hashlib.sha256(tar).hexdigest(),
        archive=base64.b64encode(gzip.compress(tar)).decode(),
        program={"sparkwright/host/fetch/fetch.py": "pass\n"},
    )


@pytest.mark.parametrize("filtered", [True, False], ids=["filter", "old-python"])
@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_archive_is_refused_completely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: list[tarfile.TarInfo], filtered: bool
) -> None:
    if not filtered:  # Python before 3.10.12 has no filter
        monkeypatch.delattr(tarfile, "data_filter")
    home = tmp_path / "runtime/one"
    tar = _tar(_member("good.py", size=4), *members)
    with pytest.raises(SystemExit, match=r"the runtime's archive has .*: it is not installed"):
        install_runtime.main(_request(home, tar))
    assert not home.exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_archive_with_too_much_content_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = _tar(*(_member(f"f{n}") for n in range(12)))
    with tarfile.open(fileobj=io.BytesIO(many)) as archive:
        monkeypatch.setattr(install_runtime, "MOST_MEMBERS", 11)
        with pytest.raises(SystemExit, match="more than 11 members"):
            install_runtime.unpack(archive, tmp_path)
    large = _tar(_member("a", size=3 << 20))
    monkeypatch.setattr(install_runtime, "_MOST", 2 << 20)
    with (
        tarfile.open(fileobj=io.BytesIO(large)) as archive,
        pytest.raises(SystemExit, match="or 2 MiB of content"),
    ):
        install_runtime.unpack(archive, tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_archive_bomb_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install_runtime, "_MOST", 1 << 20)
    home = tmp_path / "runtime/one"
    with pytest.raises(SystemExit, match="has more than 1 MiB: refused"):
        install_runtime.main(_request(home, bytes(2 << 20)))
    assert not home.exists()


def test_an_archive_with_another_hash_is_not_unpacked(tmp_path: Path) -> None:
    home = tmp_path / "runtime/one"
    with pytest.raises(SystemExit, match="damaged on its way"):
        install_runtime.main(_request(home, _tar(_member("a.py", size=4)), "0" * 64))
    assert not home.exists()


def test_a_users_own_runtime_is_replaced(folder: Path) -> None:
    home = folder / "runtime/one"
    evil = home / "packages/hf_transfer/__init__.py"
    evil.parent.mkdir(parents=True)
    evil.write_text("evil()")
    for path in (home, *home.rglob("*")):
        os.chown(path, UID, UID)
    install_runtime.main(_request(home, _tar(_member("hf_transfer.py", size=4))))
    assert not evil.exists()
    assert (home / "packages/hf_transfer.py").is_file()
    assert home.stat().st_uid == 0
