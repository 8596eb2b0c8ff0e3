"""Directories, owners and modes of fetched files, and the lock of a destination."""

from __future__ import annotations

import fcntl
import grp
import json
import os
import pwd
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from sparkwright.host.fetch import holes
from sparkwright.host.fetch.errors import Failed, Temporary
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import FetchRequest
from sparkwright.host.lib import files, receipt, trusted
from sparkwright.host.lib.receipt import ReceiptEntry
from sparkwright.host.lib.records import decode

_HOLDER = "holder.json"
_VERIFIED = "verified.json"
_FILE_MODE, _DIRECTORY_MODE = 0o644, 0o755


class Stage:
    """The directory `.staging-<commit>` beside the destination, on the same file system.

    files/ becomes the destination by one rename, parts/ has what is not verified yet, and
    verified.json has the receipt entries of a run that did not reach its end. All of it is root's
    alone, like the directory that it lies in: one that another user has made is removed.
    """

    def __init__(self, request: FetchRequest) -> None:
        self.root = Path(request.destination).parent / f".staging-{request.revision}"
        self.files = self.root / "files"
        self.parts = self.root / "parts"

    def part(self, path: str) -> Path:
        """Return the part of a file."""
        return self.parts / f"{path}.part"

    @cached_property
    def mapped(self) -> bool:
        """Whether parts need maps: the file system does not report their holes exactly."""
        return not holes.reported(self.parts)

    def free(self) -> int:
        """The free bytes of the file system; no bound where it does not say how large it is."""
        usage = shutil.disk_usage(self.root)
        return usage.free if usage.total else sys.maxsize

    def copy(self, path: str) -> Path:
        """Return where a file of this host is copied to, to be verified there."""
        return self.parts / f"{path}.copy"

    def corrupt(self, path: str) -> Path:
        """Return where a file with a wrong hash is set aside."""
        return self.parts / f"{path}.corrupt"

    def verified(self) -> dict[str, ReceiptEntry]:
        """Return the receipt entries of earlier runs."""
        try:
            text = files.read(self.root / _VERIFIED) or ""
            return decode(dict[str, ReceiptEntry], json.loads(text))
        except ValueError:
            return {}

    def keep(self, entries: dict[str, ReceiptEntry]) -> None:
        """Write down the receipt entries of this run so far."""
        write_json(self.root / _VERIFIED, {path: asdict(one) for path, one in entries.items()})

    def remove(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self.root, ignore_errors=True)

    @contextmanager
    def lock(self, state_dir: str) -> Iterator[int]:
        """Lock the directory. Raises Temporary, naming the holder, when another run has it."""
        trusted.take_over(self.root.parent)
        while True:
            self._make()
            descriptor = os.open(
                self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            )
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise Temporary(self._held()) from None
            # The previous holder may have removed the directory between the two calls.
            try:
                if os.fstat(descriptor).st_ino == self.root.stat().st_ino:
                    break
            except FileNotFoundError:
                pass
            os.close(descriptor)
        holder = {"pid": os.getpid(), "since": int(time.time()), "state_dir": state_dir}
        write_json(self.root / _HOLDER, holder)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _make(self) -> None:
        """Make the directory; what another user has put in its place is removed."""
        with trusted.directory(self.root.parent) as folder:
            with suppress(FileExistsError):
                os.mkdir(self.root.name, 0o700, dir_fd=folder)
            found = os.lstat(self.root.name, dir_fd=folder)
            if stat.S_ISDIR(found.st_mode) and trusted.why(found) is None:
                return
            log(f"{self.root} was not made by root: removing it")
            if stat.S_ISDIR(found.st_mode):
                shutil.rmtree(self.root)
            else:
                os.unlink(self.root.name, dir_fd=folder)
            os.mkdir(self.root.name, 0o700, dir_fd=folder)

    def _held(self) -> str:
        try:
            holder = json.loads((self.root / _HOLDER).read_text(encoding="utf-8"))
            since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder["since"]))
            who = f"process {holder['pid']} (since {since}, progress in {holder['state_dir']})"
        except (OSError, ValueError, KeyError, TypeError):
            who = "another process"
        return f"{who} is fetching into {self.root} already. Wait until it ends, then run again."


def other_revisions(destination: Path) -> list[tuple[Path, dict[str, ReceiptEntry]]]:
    """Return other revisions of the same model: directory and receipt entries."""
    found = []
    for directory in sorted(destination.parent.glob("*")):
        known = receipt.read(str(directory)) if directory != destination else None
        if known is not None and trusted.exposed(directory) is None:
            found.append((directory, known.files))
    return found


def link(source: Path, base: Path, path: str) -> bool:
    """Give a verified file a second name below base. Returns False if the file system can't."""
    real_directories(base, path)
    target = base / path
    target.unlink(missing_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def write_json(path: Path, document: Any) -> None:
    """Replace a JSON file; it is synced before it gets its name."""
    files.write(path, json.dumps(document, indent=1, sort_keys=True) + "\n", 0o644)


def sync(path: Path) -> None:
    """Write a file or directory to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def real_directories(base: Path, path: str) -> None:
    """Create the directories of a file below base, or have existing ones root's alone.

    A link or file in their place is removed.
    """
    at = base
    trusted.take_over(at)
    for part in PurePosixPath(path).parts[:-1]:
        at /= part
        if at.is_symlink() or (at.exists() and not at.is_dir()):
            at.unlink()
        trusted.take_over(at)


def beyond_link(base: Path, path: str) -> bool:
    """Return whether a file or one of its directories below base is a symlink."""
    at = base
    for part in PurePosixPath(path).parts:
        at /= part
        if at.is_symlink():
            return True
    return False


def extras(base: Path, expected: Iterable[str]) -> list[str]:
    """Return the files in a directory that are not of the repository, sorted."""
    known = {*expected, receipt.NAME}
    found = []
    for directory, names, entries in os.walk(base):
        links = [name for name in names if Path(directory, name).is_symlink()]
        for name in (*entries, *links):
            relative = Path(directory, name).relative_to(base).as_posix()
            if relative not in known:
                found.append(relative)
    return sorted(found)


def report_extras(destination: Path, expected: Iterable[str]) -> None:
    """Log which files in a model directory are not of its repository."""
    found = extras(destination, expected)
    if found:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        log(f"not in this repository, left alone: {', '.join(found[:5])}{more}")


class Ownership:
    """Sets owner and mode of fetched files and directories."""

    def __init__(self, request: FetchRequest) -> None:
        self._ids: tuple[int, int] | None = None
        if request.owner is None:
            return
        user, _, group = request.owner.partition(":")
        try:
            entry = pwd.getpwnam(user)
            self._ids = (entry.pw_uid, grp.getgrnam(group).gr_gid if group else entry.pw_gid)
        except KeyError:
            raise Failed(
                f"This host has no user or group {request.owner!r}. Create it or name another."
            ) from None
        if os.geteuid() != 0 and self._ids != (os.geteuid(), os.getegid()):
            raise Failed(f"Only root can change the owner to {request.owner}: run this as root.")

    def file(self, path: Path) -> None:
        """Set owner and mode of a file."""
        self._apply(path, _FILE_MODE)

    def directory(self, path: Path) -> None:
        """Set owner and mode of a directory."""
        self._apply(path, _DIRECTORY_MODE)

    def _apply(self, path: Path, mode: int) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            trusted.give(descriptor, mode, self._ids)
        finally:
            os.close(descriptor)
