"""The runtime bundle: huggingface_hub and hf_transfer for a host that cannot reach PyPI.

The controller downloads the pinned wheels for the host's architecture and Python with pip,
unpacks them (nothing is executed) into one tree, and packs that as a deterministic tar.gz.
The host unpacks it and puts the tree on sys.path; nothing is installed.

The bundle is named by the sha256 of the tar inside the gzip: the same pins give the same name
on every controller, whatever zlib it has.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ARCHITECTURES = ("aarch64", "x86_64")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
REQUIREMENTS = Path(__file__).with_name("runtime_requirements.txt")

# Raise when the way of packing changes, so that cached bundles are made again.
_FORMAT = 1
# Wheels built against these glibc versions run on Ubuntu 22.04, Debian 12 and newer.
_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
_PIP_SECONDS = 600
# Directories inside packages that a host never imports.
_UNUSED = frozenset({"__pycache__", "test", "tests"})


class RuntimeBundleError(Exception):
    """The bundle cannot be made. The text is meant for the user and names the remedy."""


@dataclass(frozen=True)
class Runtime:
    """A bundle on the controller's disk.

    path: the tar.gz. digest: sha256 (hex) of the tar inside it. size: bytes of the tar.gz.
    """

    path: Path
    digest: str
    size: int


def build_runtime(
    arch: str, python: str, cache_dir: Path, requirements: Path = REQUIREMENTS
) -> Runtime:
    """Return the bundle for hosts of one architecture and Python minor version.

    arch is as `uname -m` prints it, python is "X.Y". A bundle that is in cache_dir already is
    returned in milliseconds, without pip and without network.
    Raises RuntimeBundleError with a message for the user.
    """
    if arch not in ARCHITECTURES:
        raise RuntimeBundleError(
            f"No runtime for architecture {arch!r}: wheels of hf_transfer exist for "
            f"{' and '.join(ARCHITECTURES)} only."
        )
    if python not in PYTHONS:
        raise RuntimeBundleError(
            f"No runtime for Python {python!r}: give the host one of {', '.join(PYTHONS)}."
        )
    try:
        pins = requirements.read_bytes()
    except OSError as error:
        raise RuntimeBundleError(
            f"Cannot read the pins {requirements}: {error.strerror}. Reinstall sparkwright."
        ) from error
    index = cache_dir / f"runtime-{arch}-py{python}-{key_of(pins)}.json"
    cached = _read_index(index)
    if cached is not None:
        return cached
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".runtime-", dir=cache_dir) as work:
            wheels, tree = Path(work, "wheels"), Path(work, "tree")
            _download(arch, python, requirements, wheels)
            for wheel in sorted(wheels.glob("*.whl")):
                _unpack(wheel, tree)
            return _store(_tar(tree), arch, python, index)
    except OSError as error:
        raise RuntimeBundleError(
            f"Cannot write the runtime bundle in {cache_dir}: {error.strerror or error}. "
            "Free some space there (60 MB are needed) or name another cache directory."
        ) from error


def key_of(pins: bytes) -> str:
    """What bundles of these pins are called."""
    return hashlib.sha256(b"%d\0" % _FORMAT + pins).hexdigest()[:16]


def name_of(arch: str, python: str, digest: str) -> str:
    """The file of a bundle."""
    return f"runtime-{arch}-py{python}-{digest[:16]}.tar.gz"


def _read_index(index: Path) -> Runtime | None:
    """Return what an earlier run stored, or None when there is nothing whole."""
    try:
        entry = json.loads(index.read_text(encoding="utf-8"))
        path = index.with_name(entry["file"])
        if path.stat().st_size == entry["size"]:
            return Runtime(path, entry["digest"], entry["size"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _download(arch: str, python: str, requirements: Path, wheels: Path) -> None:
    """Download the wheels. pip's own configuration (index, proxy, certificates) is honoured."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    for platform in _PLATFORMS:
        command += ["--platform", f"{platform}_{arch}"]
    command += ["--python-version", python, "--implementation", "cp"]
    command += ["--requirement", str(requirements), "--dest", str(wheels)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_PIP_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeBundleError(
            f"pip did not finish downloading the host runtime in {_PIP_SECONDS} s. "
            "Check the controller's connection to its package index and run again."
        ) from error
    if done.returncode:
        raise RuntimeBundleError(_explain(done.stderr, arch, python))


def _explain(stderr: str, arch: str, python: str) -> str:
    """Turn pip's words into one message: what failed, why, and the remedy."""
    what = f"Cannot download the host runtime ({arch}, Python {python})"
    if "No module named pip" in stderr:
        return f"{what}: {sys.executable} has no pip. Install it: {sys.executable} -m ensurepip."
    errors = [line for line in stderr.splitlines() if line.startswith("ERROR:")] or [stderr.strip()]
    said = errors[-1].removeprefix("ERROR:").strip()[:300]
    if "DO NOT MATCH THE HASHES" in stderr:
        return (
            f"{what}: a package on the index has another content than the pinned one. "
            f"Do not use it; check the index that pip is configured for. pip said: {said}"
        )
    # pip does not distinguish an unreachable index from one that lacks the package.
    if "from versions: none" in stderr or "Retrying" in stderr:
        return (
            f"{what}: the package index is out of reach, or lacks the package. Connect the "
            "controller to it (or point pip at a mirror: PIP_INDEX_URL, HTTPS_PROXY), or copy "
            f"the cache directory from a controller that has made this bundle. pip said: {said}"
        )
    return (
        f"{what}. The index that pip is configured for must have every package of "
        f"{REQUIREMENTS.name}. pip said: {said}"
    )


def _unpack(wheel: Path, tree: Path) -> None:
    """Unpack one wheel into the tree as an installer would lay it out, without its scripts."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            path = PurePosixPath(info.filename)
            if info.is_dir() or _UNUSED & set(path.parts[:-1]):
                continue
            if path.is_absolute() or ".." in path.parts:
                raise RuntimeBundleError(f"{wheel.name} holds the path {path}: refused.")
            if path.parts[0].endswith(".data"):
                if path.parts[1] not in {"purelib", "platlib"}:
                    continue
                path = PurePosixPath(*path.parts[2:])
            target = tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)


def _tar(tree: Path) -> bytes:
    """Return the tree as a tar that depends on names and contents alone."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(tree.rglob("*")):
            entry = tarfile.TarInfo(path.relative_to(tree).as_posix())
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
            else:
                entry.mode, entry.size = 0o644, path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(entry, content)
    return buffer.getvalue()


def _store(tar: bytes, arch: str, python: str, index: Path) -> Runtime:
    """Write the bundle, then the index entry that makes it count."""
    digest = hashlib.sha256(tar).hexdigest()
    path = index.with_name(name_of(arch, python, digest))
    packed = gzip.compress(tar, compresslevel=6, mtime=0)
    _write(path, packed)
    entry = {"file": path.name, "digest": digest, "size": len(packed)}
    _write(index, json.dumps(entry).encode())
    return Runtime(path, digest, len(packed))


def _write(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".runtime-", delete=False) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
