"""Connection settings from a group_data file that can't be run: only literal values are read."""

import ast
import re
from pathlib import Path
from typing import Any

#: Line at the top level of a file that sets one value: ``ssh_user = "spark"``.
_LINE = re.compile(r"^((?:_?ssh_|_sudo|_su_)\w*|services_root|models_root)\s*=\s*(.+)$")
#: Largest size of a file in bytes.
_MOST = 1 << 20


def connection_data(file: Path) -> dict[str, Any]:
    """Return a file's connection settings and directories of sparkwright, as far as their values
    are literals.

    No code of the file is run. Lines without a literal value are skipped.
    """
    try:
        text = file.read_bytes()[:_MOST].decode("utf-8-sig", "replace")
    except OSError:
        return {}
    result: dict[str, Any] = {}
    for line in text.splitlines():
        if match := _LINE.match(line):
            try:
                result[match[1]] = ast.literal_eval(match[2].strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
    return result
