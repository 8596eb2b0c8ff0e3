"""Unpack the runtime and the fetch program. The program runs on the host as root.

``tarfile``'s own filter is used if this Python has the filter (3.10 since 3.10.12). sparkwright's
own check comes first, needs no filter and is stricter: no links, no devices, no set-uid bits.
"""

import base64
import gzip
import hashlib
import io
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from sparkwright.host.lib import records, trusted


@records.dataclass(frozen=True)
class RuntimeRequest:
    """Request to install a runtime, completely or not at all.

    Attributes:
        home: directory; an existing directory stays unchanged.
        digest: sha256 of the tar in the archive, in hex.
        archive: gzipped tar of the libraries, in base64.
        program: path below home -> text of the file.
    """

    home: str
    digest: str
    archive: str
    program: dict[str, str]


#: Largest size of the unpacked tar in bytes; the libraries take 40 MB.
_MOST = 256 << 20
#: Largest number of members of the tar; the libraries have 1,500.
MOST_MEMBERS = 20_000


def main(request: RuntimeRequest) -> None:
    """Install ``packages/`` and the program's files below ``home``, completely or not at all."""
    home = Path(request.home)
    trusted.take_over(home.parent)
    if home.exists():
        if trusted.exposed(home) is None:
            return
        shutil.rmtree(home)  # another user made the directory before root owned its parent
    content = _unpacked(base64.b64decode(request.archive))
    if hashlib.sha256(content).hexdigest() != request.digest:
        raise SystemExit("the runtime was damaged during the transfer: run the command again")
    staging = home.with_name(f".{home.name}")
    shutil.rmtree(staging, ignore_errors=True)
    (staging / "packages").mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        unpack(archive, staging / "packages")
    for path, source in request.program.items():
        target = staging / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source, encoding="utf-8")
    staging.replace(home)


def _unpacked(packed: bytes) -> bytes:
    """Return the tar; its size in memory is limited."""
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            content = file.read(_MOST + 1)
    except (OSError, EOFError, zlib.error):
        return b""
    if len(content) > _MOST:
        raise SystemExit(f"the runtime's archive has more than {_MOST >> 20} MiB: refused")
    return content


def unpack(archive: tarfile.TarFile, directory: Path) -> None:
    """Unpack an archive into a directory completely, or not at all.

    Raises:
        SystemExit: a member leads out of the directory, is a link or a device, or has a set-uid
        bit; or the archive exceeds a limit.
    """
    members: list[tarfile.TarInfo] = []
    size = 0
    for member in archive:
        members.append(member)
        size += member.size
        fault = _fault(member)
        if len(members) > MOST_MEMBERS or size > _MOST:
            fault = f"more than {MOST_MEMBERS} members or {_MOST >> 20} MiB of content"
        if fault:
            raise SystemExit(f"the runtime's archive has {fault}: it is not installed")
    if hasattr(tarfile, "data_filter"):
        archive.extractall(directory, members, filter="data")
    else:
        archive.extractall(directory, members)


def _fault(member: tarfile.TarInfo) -> str | None:
    """Return why a member is refused; None for a plain file or directory below the target."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or "\0" in member.name:
        return f"the name {member.name!r}, which leads out of its directory"
    if not member.isreg() and not member.isdir():
        return f"{member.name!r}, which is neither a file nor a directory"
    return f"{member.name!r} with mode {member.mode:04o}" if member.mode & 0o7000 else None
