"""The runtime bundle: hf_transfer and hf_xet for a host that cannot reach PyPI.

The controller downloads the pinned wheels for the host's architecture with pip, unpacks them
(nothing is executed) into one tree, and packs that as a deterministic tar.gz. The host unpacks it
and puts the tree on sys.path; nothing is installed. One tree is for every Python: both libraries
use its stable interface.

The bundle is named by the sha256 of the tar inside the gzip, which this version of sparkwright
pins: the same wheels give the same name on every controller, whatever zlib it has, and a bundle
that was carried from elsewhere is taken only if it is that one.
"""

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sparkwright.documents.text_files import write

ARCHITECTURES = ("aarch64", "x86_64")
REQUIREMENTS = Path(__file__).with_name("runtime_requirements.txt")
#: The sha256 of the tar that these requirements make, by architecture: .ci/pins.sh writes it.
DIGESTS = Path(__file__).with_name("runtime_digests.json")

# Wheels built against these glibc versions run on Ubuntu 22.04, Debian 12 and newer.
_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
#: The oldest Python of hosts; wheels with a stable interface are for all newer ones.
_PYTHON = "3.10"
_PIP_SECONDS = 600
_MOST_BYTES = 256 << 20
# Directories inside packages that a host never imports.
_UNUSED = frozenset({"__pycache__", "test", "tests"})


class RuntimeBundleError(Exception):
    """The bundle cannot be made. The text is meant for the user and names the remedy."""


@dataclass(frozen=True)
class Runtime:
    """A bundle on the controller's disk.

    path: the tar.gz. digest: sha256 (hex) of the tar inside it.
    """

    path: Path
    digest: str


def pinned_runtime(arch: str, directory: Path) -> Runtime:
    """Return the path in a directory, and the digest, of the bundle that this version pins.

    arch is as `uname -m` prints it. Raises RuntimeBundleError if there is none for it.
    """
    digest: str | None = json.loads(DIGESTS.read_text(encoding="utf-8")).get(arch)
    if digest is None:
        raise RuntimeBundleError(
            f"No runtime for architecture {arch!r}: wheels of hf_transfer exist for "
            f"{' and '.join(ARCHITECTURES)} only."
        )
    return Runtime(directory / f"runtime-{arch}-{digest[:16]}.tar.gz", digest)


def build_runtime(arch: str, cache_dir: Path) -> Runtime:
    """Return the bundle for hosts of one architecture.

    A bundle that is in cache_dir already is returned in milliseconds, without pip and without
    network. Raises RuntimeBundleError with a message for the user.
    """
    bundle = pinned_runtime(arch, cache_dir)
    if bundle.path.is_file():
        return bundle
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        tar = pack(arch)
        if hashlib.sha256(tar).hexdigest() != bundle.digest:
            raise RuntimeBundleError(
                f"The runtime for {arch} is not the one that this version of sparkwright pins "
                f"(sha256 {bundle.digest}). Reinstall sparkwright."
            )
        write(bundle.path, gzip.compress(tar, compresslevel=6, mtime=0))
    except OSError as error:
        raise RuntimeBundleError(
            f"Cannot write the runtime bundle in {cache_dir}: {error.strerror or error}. "
            "Free some space there (60 MB are needed) or name another cache directory."
        ) from error
    return bundle


def carried_runtime(arch: str, directory: Path) -> Runtime:
    """Return the bundle of a directory that was carried here: only the very one that is pinned.

    What lies beside it is not read: whoever carried the directory may have changed it.
    Raises RuntimeBundleError with a message for the user.
    """
    bundle = pinned_runtime(arch, directory)
    again = (
        "Make the bundle again with this version of sparkwright: "
        "sparkwright bundle INVENTORY DIRECTORY"
    )
    try:
        with gzip.open(bundle.path) as file:
            tar = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise RuntimeBundleError(f"The bundle has no {bundle.path.name}. {again}.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise RuntimeBundleError(f"{bundle.path} can't be read: {error}. {again}.") from None
    if hashlib.sha256(tar).hexdigest() != bundle.digest:
        raise RuntimeBundleError(
            f"{bundle.path} is not the runtime that this version of sparkwright pins (sha256 "
            f"{bundle.digest}): it was changed, and is not used. {again}."
        )
    return bundle


def pack(arch: str, requirements: Path = REQUIREMENTS) -> bytes:
    """Return the tar of the pinned wheels. Raises RuntimeBundleError."""
    with tempfile.TemporaryDirectory(prefix="sparkwright-runtime-") as work:
        wheels, tree = Path(work, "wheels"), Path(work, "tree")
        _download(arch, requirements, wheels)
        for wheel in sorted(wheels.glob("*.whl")):
            _unpack(wheel, tree)
        return _tar(tree)


def _download(arch: str, requirements: Path, wheels: Path) -> None:
    """Download the wheels. pip's own configuration (index, proxy, certificates) is honoured."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    for platform in _PLATFORMS:
        command += ["--platform", f"{platform}_{arch}"]
    command += ["--python-version", _PYTHON, "--implementation", "cp"]
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
        raise RuntimeBundleError(_explain(done.stderr, arch))


def _explain(stderr: str, arch: str) -> str:
    """Turn pip's words into one message: what failed, why, and the remedy."""
    what = f"Cannot download the host runtime ({arch})"
    if "No module named pip" in stderr:
        return f"{what}: {sys.executable} has no pip. Install it: {sys.executable} -m ensurepip."
    errors = [line for line in stderr.splitlines() if line.startswith("ERROR:")] or [stderr.strip()]
    text = errors[-1].removeprefix("ERROR:").strip()[:300]
    if "DO NOT MATCH THE HASHES" in stderr:
        return (
            f"{what}: a package on the index has another content than the pinned one. "
            f"Do not use it; check the index that pip is configured for. pip said: {text}"
        )
    # pip does not distinguish an unreachable index from one that lacks the package.
    if "from versions: none" in stderr or "Retrying" in stderr:
        return (
            f"{what}: the package index is out of reach, or lacks the package. Connect the "
            "controller to it (or point pip at a mirror: PIP_INDEX_URL, HTTPS_PROXY), or copy "
            f"the cache directory from a controller that has made this bundle. pip said: {text}"
        )
    return (
        f"{what}. The index that pip is configured for must have every package of "
        f"{REQUIREMENTS.name}. pip said: {text}"
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
