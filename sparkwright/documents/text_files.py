"""The user's files, read and written as text."""

import os
import stat
import tempfile
from pathlib import Path

from sparkwright.documents.bounds import LARGEST, Unusable
from sparkwright.findings.user_error import refusal


def read(path: Path, largest: int = LARGEST) -> str:
    """Return the text of a regular file in UTF-8, without a byte order mark.

    Raises:
        Unusable: the path is not a regular file, too large, or can't be read.
    """
    data = read_bytes(path, largest)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"not UTF-8: the byte 0x{data[error.start]:02x} can't begin a character"
        raise Unusable(problem, "save the file in UTF-8", line) from None


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Return the bytes of a regular file. Raises Unusable, as ``read`` does."""
    try:
        # Check the kind first: opening a pipe waits for its writer.
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a directory" if path.is_dir() else "not a regular file"
            raise Unusable(f"this is {kind}", "name a file")
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Unusable(f"can't be read: {reason}", "name a file that you may read") from None
    if len(data) > largest:
        raise Unusable(f"larger than {largest} bytes", "name the right file, or split it")
    return data


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a directory and its parents. A site's ``.sparkwright`` holds keys, so only its owner can
    read it, for any umask, and even if another program made the directory.

    Raises:
        UserError: ``.sparkwright`` belongs to another user.
    """
    for state in [item for item in (path, *path.parents) if item.name == ".sparkwright"][:1]:
        state.mkdir(0o700, parents=True, exist_ok=True)
        try:
            state.chmod(0o700)
        except PermissionError:
            remedy = f"sudo chown -R $USER {state}, or run the command as the directory's owner"
            raise refusal(str(state), "the directory belongs to another user", remedy) from None
    path.mkdir(mode, parents=True, exist_ok=True)


def write(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file atomically, even if the power fails; no user without access by ``mode`` can ever
    read it. A link at the file's path is replaced, not followed.
    """
    make_folder(path.parent, 0o777 if mode & 0o077 else 0o700)
    # Two commands of a site may write the same file at once.
    handle, draft = tempfile.mkstemp(".new", f".{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
