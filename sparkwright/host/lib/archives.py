"""Unpacking a tar of files and directories, and of nothing else.

``tarfile``'s own filter is used where Python has it: 3.10 has it from 3.10.12 on. The check before
needs no filter, and is stricter: no links, no devices, no mode that makes a program another user's.
"""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath

#: Members of one archive; the fetch program's libraries are 1,500.
MOST_MEMBERS = 20_000


class Refused(Exception):
    """An archive has what no honest one has; completes "the archive ..."."""


def unpack(archive: tarfile.TarFile, directory: Path, most_bytes: int) -> None:
    """Unpack an archive into a directory, or nothing of it.

    Raises:
        Refused: a name that leads out, a link, a device, a set-uid bit, or too much of anything.
    """
    members: list[tarfile.TarInfo] = []
    size = 0
    for member in archive:
        check(member)
        size += member.size
        members.append(member)
        if len(members) > MOST_MEMBERS or size > most_bytes:
            raise Refused(
                f"has more than {MOST_MEMBERS} members or {most_bytes >> 20} MiB of content"
            )
    if hasattr(tarfile, "data_filter"):
        archive.extractall(directory, members, filter="data")
    else:
        archive.extractall(directory, members)


def check(member: tarfile.TarInfo) -> None:
    """Refuse what is no plain file or directory below the place that is unpacked to."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or "\0" in member.name:
        raise Refused(f"has the name {member.name!r}, which leads out of its directory")
    if not member.isreg() and not member.isdir():
        raise Refused(f"has {member.name!r}, which is neither a file nor a directory")
    if member.mode & 0o7000:
        raise Refused(f"has {member.name!r} with mode {member.mode:04o}")
