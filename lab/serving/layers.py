"""Layers of the image: tar archives that are equal for equal content."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from dataclasses import asdict, dataclass
from pathlib import Path

MTIME = 1_767_225_600
"""Time of every file in the layers: 2026-01-01."""

PACKAGES = "base-files,bash,dash,coreutils,grep,sed,libc-bin,python3"
SUITE = "trixie"

_UNUSED = (
    # mmdebstrap writes the first four paths from this machine's files.
    "./etc/apt/",
    "./etc/fstab",
    "./etc/hostname",
    "./etc/resolv.conf",
    "./usr/share/",
    "./var/lib/apt/",
    "./var/lib/dpkg/",
    "./var/cache/",
    "./dev/",
    "./usr/lib/x86_64-linux-gnu/gconv/",
    "./usr/lib/x86_64-linux-gnu/perl-base/",
    "./usr/lib/python3.13/ensurepip/",
    "./usr/lib/python3.13/idlelib/",
    "./usr/lib/python3.13/pydoc_data/",
    "./usr/lib/python3.13/test/",
    "./usr/lib/python3.13/turtledemo/",
    "./usr/lib/python3.13/unittest/",
)
"""Files of the packages that the fake server never opens. Docker makes /dev itself."""

_COMPILE = """
import argparse, asyncio, email.utils, gc, hashlib, hmac, json, platform, py_compile, resource
import secrets, signal, socket, subprocess, sys, urllib.parse
for module in list(sys.modules.values()):
    source = getattr(module, '__file__', None) or ''
    if source.endswith('.py'):
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(source, doraise=True, invalidation_mode=mode)
"""
"""Program for the new root: it compiles the server's imports, which halves the start time."""


@dataclass(frozen=True)
class Layer:
    """A layer's two names: digest and size of the gzip file, and diff_id of the tar within."""

    digest: str
    size: int
    diff_id: str
    path: str


def base_layer(cache: Path) -> Layer:
    """Debian's Python and a shell, made with mmdebstrap if the cache lacks them.

    The function needs root and a Debian mirror. The cache keeps `serving-base.tar.gz` and a `.json`
    with its digest; both get their final name only when they are complete. The packages are
    unpacked without their install scripts, which a container of one program does not need.
    """
    archive = cache / "serving-base.tar.gz"
    facts = cache / "serving-base.json"
    recipe = hashlib.sha256(f"{SUITE}|{PACKAGES}|{_UNUSED}|{_COMPILE}".encode()).hexdigest()
    if archive.is_file() and facts.is_file():
        data = json.loads(facts.read_text(encoding="utf-8"))
        if data["recipe"] == recipe and data["layer"]["size"] == archive.stat().st_size:
            return Layer(**data["layer"])
    cache.mkdir(parents=True, exist_ok=True)
    raw = cache / f"serving-base.{os.getpid()}.tar"
    packed = raw.with_suffix(".tar.gz")
    try:
        _bootstrap(raw)
        with tarfile.open(raw) as source:
            _repack(source, packed)
        layer = described(packed, archive)
        facts.unlink(missing_ok=True)
        packed.replace(archive)
        text = json.dumps({"recipe": recipe, "layer": asdict(layer)})
        temporary = facts.with_suffix(".json.new")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(facts)
    finally:
        raw.unlink(missing_ok=True)
        packed.unlink(missing_ok=True)
    return layer


def file_layer(files: dict[str, tuple[bytes, int]], path: Path) -> Layer:
    """A layer of files (path in the image to content and mode), written to `path`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder in sorted({str(parent) for name in files for parent in Path(name).parents}):
            if folder not in (".", "/"):
                entry = _entry(folder, 0o755)
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
        for name, (content, mode) in sorted(files.items()):
            entry = _entry(name, mode)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    plain = buffer.getvalue()
    packed = gzip.compress(plain, 6, mtime=0)
    path.write_bytes(packed)
    return Layer(_sha256(packed), len(packed), _sha256(plain), str(path))


def _bootstrap(target: Path) -> None:
    if shutil.which("mmdebstrap") is None:
        raise SystemExit("lab image: mmdebstrap is missing: apt-get install mmdebstrap")
    compile_hook = f'chroot "$1" /usr/bin/python3 -B -c "{_COMPILE}"'
    command = [
        "mmdebstrap", "--quiet", "--variant=extract", f"--include={PACKAGES}",
        "--components=main", f"--extract-hook={compile_hook}", SUITE, str(target),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"lab image: mmdebstrap failed:\n{done.stderr[-2000:]}")


def _repack(source: tarfile.TarFile, target: Path) -> None:
    """Sort the files (hard links after their targets), drop unused files, owners and times."""
    kept = [entry for entry in source if not f"{entry.name}/".startswith(_UNUSED)]
    with (
        target.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=5, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for entry in sorted(kept, key=lambda entry: (not entry.isdir(), entry.islnk(), entry.name)):
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.pax_headers = {}
            entry.mtime = MTIME
            tar.addfile(entry, source.extractfile(entry) if entry.isreg() else None)


def described(packed: Path, final: Path) -> Layer:
    """Describe the layer in a gzip file, which later gets the path `final`."""
    plain = hashlib.sha256()
    with gzip.open(packed) as file:
        while chunk := file.read(1 << 20):
            plain.update(chunk)
    with packed.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = packed.stat().st_size
    return Layer(f"sha256:{digest}", size, f"sha256:{plain.hexdigest()}", str(final))


def _entry(name: str, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(f"./{name}")
    entry.mode = mode
    entry.mtime = MTIME
    return entry


def _sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()
