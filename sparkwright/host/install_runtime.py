"""Unpacks the runtime and the fetch program. Runs on the host as root."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from sparkwright.host.lib import archives, trusted


@dataclass(frozen=True)
class RuntimeRequest:
    """What is installed, whole or not at all.

    Attributes:
        home: directory; nothing is done where it is there.
        digest: sha256 of the tar in the archive, in hex.
        archive: gzipped tar of the libraries, in base64.
        program: path below home -> source.
    """

    home: str
    digest: str
    archive: str
    program: dict[str, str]


#: Bytes of the unpacked tar; the libraries take 40 MB.
_MOST = 256 << 20


def main(request: RuntimeRequest) -> None:
    """Put ``packages/`` and the program's files below ``home``, whole or not at all."""
    home = Path(request.home)
    trusted.take_over(home.parent)
    if home.exists():
        if trusted.exposed(home) is None:
            return
        shutil.rmtree(home)  # another user has made it, before the directory was root's
    content = _unpacked(base64.b64decode(request.archive))
    if hashlib.sha256(content).hexdigest() != request.digest:
        raise SystemExit("the runtime was damaged on its way to the host: run again")
    staging = home.with_name(f".{home.name}")
    shutil.rmtree(staging, ignore_errors=True)
    (staging / "packages").mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        try:
            archives.unpack(archive, staging / "packages", _MOST)
        except archives.Refused as error:
            raise SystemExit(f"the runtime's archive {error}: it is not installed") from None
    for path, source in request.program.items():
        place = staging / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source, encoding="utf-8")
    staging.replace(home)


def _unpacked(packed: bytes) -> bytes:
    """The tar, never more than its limit in memory."""
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            content = file.read(_MOST + 1)
    except (OSError, EOFError, zlib.error):
        return b""
    if len(content) > _MOST:
        raise SystemExit(f"the runtime's archive has more than {_MOST >> 20} MiB: refused")
    return content
