"""The runtime bundle fits the host's architecture, is reproducible, and is cached."""

import gzip
import hashlib
import os
import sys
import tarfile
import time
from pathlib import Path

import pytest

from sparkwright.resolve import runtime
from sparkwright.resolve.runtime import Runtime, RuntimeBundleError, build_runtime
from tests.host.fetch.conftest import Fetch

MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine of /usr/include/elf.h
# The deploy's own cache is kept between runs: only the first run needs a package index.
CACHE = Path(__file__).parents[3] / ".sparkwright" / "cache"


def _build(arch: str) -> Runtime:
    try:
        return build_runtime(arch, CACHE)
    except RuntimeBundleError as error:
        if "out of reach" in str(error):
            pytest.skip(f"not cached and no package index: {error}")
        raise


@pytest.mark.parametrize("arch", ["aarch64", "x86_64"])
def test_the_bundle_matches_the_architecture(arch: str) -> None:
    bundle = _build(arch)
    libraries = []
    with tarfile.open(bundle.path) as archive:
        names = archive.getnames()
        for name in names:
            if name.endswith(".so"):
                file = archive.extractfile(name)
                assert file is not None
                header = file.read(20)
                assert header[:4] == b"\x7fELF"
                assert int.from_bytes(header[18:20], "little") == MACHINES[arch], name
                libraries.append(name.split("/")[0])
    assert {*libraries} == {"hf_transfer", "hf_xet"}
    # One tree works for every Python.
    assert all(".abi3." in name for name in names if name.endswith(".so"))
    assert not any("__pycache__" in name or name.startswith(("/", "..")) for name in names)
    tar = gzip.decompress(bundle.path.read_bytes())
    assert hashlib.sha256(tar).hexdigest() == bundle.digest
    assert bundle.path.stat().st_size < 20_000_000


def test_a_cached_bundle_needs_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    first = _build("x86_64")
    monkeypatch.setattr(sys, "executable", "/nonexistent")
    began = time.perf_counter()
    assert build_runtime("x86_64", CACHE) == first
    assert time.perf_counter() - began < 0.05


def test_a_bundle_works_on_this_host(fetch: Fetch, tmp_path: Path) -> None:
    """The fetch program needs only the tree, and no site-packages."""
    arch = os.uname().machine
    if arch not in MACHINES:
        pytest.skip(f"no bundle for {arch}")
    with tarfile.open(_build(arch).path) as archive:
        archive.extractall(tmp_path / "tree")
    fetch.runtime = tmp_path / "tree"
    assert "hf_transfer ended" not in fetch.complete(apart=True, downloader="hf_transfer")


def test_an_unknown_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeBundleError, match="No runtime for"):
        build_runtime("riscv64", tmp_path)


def test_an_unreachable_index_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(RuntimeBundleError, match=r"out of reach.*PIP_INDEX_URL"):
        build_runtime("aarch64", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_changed_package_is_refused(tmp_path: Path) -> None:
    """A pin whose hash differs from the package's on the index."""
    pins = tmp_path / "pins.txt"
    pins.write_text(f"h11==0.16.0 --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    with pytest.raises(RuntimeBundleError) as caught:
        runtime.pack("x86_64", pins)
    if "out of reach" in str(caught.value):
        pytest.skip("no package index")
    assert "differs from the pinned content" in str(caught.value)
