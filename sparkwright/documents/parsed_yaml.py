"""Cache of parsed YAML files: parsing the catalog takes most of a run's planning."""

import datetime as dt
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from sparkwright.documents import caches, text_files, yaml_text
from sparkwright.findings.user_error import UserError

FILE = caches.FOLDER / "yaml.json"
_DATE = "\0date"


class ParsedFiles:
    """Values of YAML files, by path; a file is parsed again if it has changed.

    The cache holds values in JSON, except values that JSON would change: without this exception a
    numeric key would be a mistake in the first run only.
    """

    def __init__(self) -> None:
        self._values: dict[str, list[Any]] = {}
        try:
            self._kept = dict(_value(FILE.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError):
            self._kept = {}

    def load(self, path: Path) -> Any:
        """Return the value of a file.

        Raises:
            Unusable: the file can't be read, or is not YAML within the bounds.
        """
        match self._kept.get(str(path.absolute())):
            case [stamp, value] if stamp == _stamp(path):
                pass
            case _:
                stamp, value = _stamp(path), yaml_text.load(text_files.read(path))
                if not _stays(value):
                    return value
        self._values[str(path.absolute())] = [stamp, value]
        return value

    def keep(self) -> None:
        """Keep the loaded data for the next run, if this run may write."""
        if caches.WRITTEN.is_set() and self._values != self._kept:
            with suppress(OSError, UserError):  # without the cache the next run only takes longer
                text_files.write(FILE, _text(self._values), 0o600)


def _text(value: Any) -> str:
    """Return the JSON text of a value, with a special form for dates. Raises TypeError for other
    types.
    """

    def date(item: Any) -> dict[str, str]:
        if type(item) is not dt.date:
            raise TypeError(type(item))
        return {_DATE: item.isoformat()}

    return json.dumps(value, default=date)


def _stays(value: Any) -> bool:
    """Return whether a value is the same after its conversion to JSON and back."""
    try:
        return bool(_value(_text(value)) == value)
    except (TypeError, ValueError):
        return False


def _value(text: str | bytes) -> Any:
    def dated(item: dict[str, Any]) -> Any:
        return dt.date.fromisoformat(item[_DATE]) if _DATE in item else item

    return json.loads(text, object_hook=dated)


def _stamp(path: Path) -> list[int]:
    """Return identity, size and times of a file; only root can set the change time back."""
    try:
        stat = path.stat()
    except OSError:
        return []
    return [stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
