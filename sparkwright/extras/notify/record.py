"""The file with what was said to whom, which one run at a time reads and writes."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparkwright.documents.text_files import write
from sparkwright.extras.notify.notices import Record
from sparkwright.findings.user_error import refusal

PLACE = Path(".sparkwright/notified.json")
#: Bytes: more is not ours.
_LARGEST = 1 << 22


@contextmanager
def held(path: Path) -> Iterator[Record]:
    """The record, for this process alone; what it holds at the end is written.

    One that can't be read counts as none: then everything is said once more.

    Raises:
        UserError: when it can't be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record = read(path)
            try:
                yield record
            finally:
                write(path, record.model_dump_json(indent=1) + "\n", 0o600)
        finally:
            os.close(lock)
    except OSError as error:
        what = f"can't be written: {error.strerror}"
        remedy = "make it writable: without it everything would be said again and again"
        raise refusal(str(path), what, remedy) from None


def read(path: Path) -> Record:
    """The record as it is."""
    try:
        with path.open("rb") as file:
            return Record.model_validate_json(file.read(_LARGEST))
    except (OSError, ValueError):
        return Record()
