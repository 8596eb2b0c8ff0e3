"""The depot's apt repositories: what they have is what their signature says."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import apt, base

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("gpg", "dpkg-deb"))), reason="made with gpg and dpkg-deb"
)


@pytest.fixture(scope="module")
def depot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("depot")
    (place / "bare" / base.DEBS).mkdir(parents=True)
    apt.publish(place / "bare", place / "apt", place / "gnupg")
    return place


def test_they_are_signed_with_the_fleet_s_own_key(depot: Path) -> None:
    for release in ("debian/dists/trixie", "nvidia"):
        file = depot / "apt" / release / "InRelease"
        words = ["gpg", "--homedir", str(depot / "gnupg"), "--status-fd", "1", "--verify"]
        said = subprocess.run([*words, str(file)], capture_output=True, text=True, check=True)
        assert "GOODSIG" in said.stdout
    subprocess.run(
        ["gpgconf", "--homedir", str(depot / "gnupg"), "--kill", "gpg-agent"], check=True
    )
    assert (depot / "apt/key.asc").read_text().startswith("-----BEGIN PGP PUBLIC KEY BLOCK")


def test_nvidia_s_packages_are_called_fakes(depot: Path) -> None:
    folder = depot / "apt/nvidia"
    index = (folder / "Packages").read_text()
    debs = sorted(folder.glob("*.deb"))
    assert [one.name.partition("_")[0] for one in debs] == [
        "linux-headers-amd64", "nvidia-container-toolkit", "nvidia-open"
    ]  # fmt: skip
    assert index.count("Description: FAKE for") == len(debs)
    for deb in debs:
        assert f"SHA256: {hashlib.sha256(deb.read_bytes()).hexdigest()}" in index
    assert hashlib.sha256(index.encode()).hexdigest() in (folder / "InRelease").read_text()


def test_they_are_made_once(depot: Path) -> None:
    before = (depot / "apt/key.asc").read_text()
    apt.publish(depot / "bare", depot / "apt", depot / "gnupg")
    assert (depot / "apt/key.asc").read_text() == before
