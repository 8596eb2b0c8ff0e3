"""The runtime bundle: hf_transfer and hf_xet for a host that cannot reach PyPI.

The controller downloads the pinned wheels for the host's architecture with pip, unpacks them
(nothing is executed) into one tree, and packs the tree as a deterministic tar.gz. The host unpacks
the archive and puts the tree on sys.path; nothing is installed. One tree serves every Python
version: both libraries use Python's stable interface.

The bundle is named by the sha256 of the tar inside the gzip, which this version of sparkwright
pins: equal wheels give the same name on every controller, with any zlib, and a bundle from
elsewhere is accepted only with this hash.
"""

import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath

from sparkwright.documents.text_files import write
from sparkwright.host.lib.records import dataclass
from sparkwright.text.shipped_yaml import beside

ARCHITECTURES = ("aarch64", "x86_64")
REQUIREMENTS = Path(__file__).with_name("runtime_requirements.txt")
#: The sha256 of the tar that these requirements make, by architecture: .ci/pins.sh writes it.
DIGESTS = Path(__file__).with_name("runtime_digests.json")

# Wheels built against these glibc versions run on Ubuntu 22.04, Debian 12 and newer.
_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
#: The oldest Python of hosts; wheels with a stable interface are for all newer versions.
_PYTHON = "3.10"
_PIP_SECONDS = 600
_MOST_BYTES = 256 << 20
# Directories inside packages that a host never imports.
_UNUSED = frozenset({"__pycache__", "test", "tests"})


class RuntimeBundleError(Exception):
    """The bundle cannot be made. The text is meant for the user and names the remedy."""

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(beside(__file__, "runtime_messages.yaml")[message].format_map(facts))


@dataclass(frozen=True)
class Runtime:
    """A bundle on the controller's disk.

    path: the tar.gz. digest: sha256 (hex) of the tar inside the bundle.
    """

    path: Path
    digest: str


def pinned_runtime(arch: str, directory: Path) -> Runtime:
    """Return the path in a directory, and the digest, of the bundle that this version pins.

    ``arch`` has the form of `uname -m`. Raises RuntimeBundleError for an architecture without a
    bundle.
    """
    digest: str | None = json.loads(DIGESTS.read_text(encoding="utf-8")).get(arch)
    if digest is None:
        names = " and ".join(ARCHITECTURES)
        raise RuntimeBundleError("unknown-architecture", arch=arch, supported=names)
    return Runtime(directory / f"runtime-{arch}-{digest[:16]}.tar.gz", digest)


def build_runtime(arch: str, cache_dir: Path) -> Runtime:
    """Return the bundle for hosts of one architecture.

    A cached bundle is returned in milliseconds, without pip and without a network. Raises
    RuntimeBundleError with a message for the user.
    """
    bundle = pinned_runtime(arch, cache_dir)
    if bundle.path.is_file():
        return bundle
    try:
        tar = pack(arch)
        if hashlib.sha256(tar).hexdigest() != bundle.digest:
            raise RuntimeBundleError("not-pinned", arch=arch, digest=bundle.digest)
        write(bundle.path, gzip.compress(tar, compresslevel=6, mtime=0))
    except OSError as error:
        reason = error.strerror or error
        raise RuntimeBundleError("not-written", folder=cache_dir, reason=reason) from error
    return bundle


def carried_runtime(arch: str, directory: Path) -> Runtime:
    """Return the bundle in a carried directory, if it is the pinned bundle.

    Other files of the directory are not read: they may have been changed on the way.
    Raises RuntimeBundleError with a message for the user.
    """
    bundle = pinned_runtime(arch, directory)
    try:
        with gzip.open(bundle.path) as file:
            tar = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise RuntimeBundleError("not-carried", file=bundle.path.name) from None
    except (OSError, EOFError, zlib.error) as error:
        raise RuntimeBundleError("unreadable", file=bundle.path, reason=error) from None
    if hashlib.sha256(tar).hexdigest() != bundle.digest:
        raise RuntimeBundleError("changed", file=bundle.path, digest=bundle.digest)
    return bundle


def pack(arch: str, requirements: Path = REQUIREMENTS) -> bytes:
    """Return the tar of the pinned wheels. Raises RuntimeBundleError."""
    with tempfile.TemporaryDirectory(prefix="sparkwright-runtime-") as wheels:
        _download(arch, requirements, Path(wheels))
        files = (_installed(wheel) for wheel in sorted(Path(wheels).glob("*.whl")))
        return _tar(dict(chain.from_iterable(files)))


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
        raise RuntimeBundleError("slow-pip", seconds=_PIP_SECONDS) from error
    if done.returncode:
        raise _explained(done.stderr, arch)


def _explained(stderr: str, arch: str) -> RuntimeBundleError:
    """Turn pip's output into one message: the failure, its cause, and the remedy."""
    if "No module named pip" in stderr:
        return RuntimeBundleError("no-pip", arch=arch, python=sys.executable)
    errors = [line for line in stderr.splitlines() if line.startswith("ERROR:")] or [stderr.strip()]
    text = errors[-1].removeprefix("ERROR:").strip()[:300]
    message = "no-download"
    if "DO NOT MATCH THE HASHES" in stderr:
        message = "another-content"
    # pip does not distinguish an unreachable index from an index without the package.
    elif "from versions: none" in stderr or "Retrying" in stderr:
        message = "no-index"
    return RuntimeBundleError(message, arch=arch, file=REQUIREMENTS.name, text=text)


def _installed(wheel: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Files of a wheel as an installer would place them, without its scripts."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            path = PurePosixPath(info.filename)
            if info.is_dir() or _UNUSED & set(path.parts[:-1]):
                continue
            if path.is_absolute() or ".." in path.parts:
                raise RuntimeBundleError("leading-out", wheel=wheel.name, path=path)
            if path.parts[0].endswith(".data"):
                if path.parts[1] not in {"purelib", "platlib"}:
                    continue
                path = PurePosixPath(*path.parts[2:])
            yield path, archive.read(info)


def _tar(files: Mapping[PurePosixPath, bytes]) -> bytes:
    """Return the files as a tar that depends only on names and contents."""
    buffer = io.BytesIO()
    folders = {folder for path in files for folder in path.parents} - {PurePosixPath()}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted({*files, *folders}):
            entry, content = tarfile.TarInfo(str(path)), files.get(path, b"")
            entry.mode, entry.size = 0o644, len(content)
            if path in folders:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
