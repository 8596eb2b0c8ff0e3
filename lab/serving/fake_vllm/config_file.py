"""`--config FILE`: arguments from a YAML file, put before the command line's arguments.

A subset of YAML is read, enough for such files: one `key: value` per line, where a value is a
scalar, a list or mapping in brackets, or a block list of scalars.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def arguments_from(path: str) -> list[str]:
    """The file's arguments as command line words; a `model` becomes the positional one.

    Raises ValueError for a file that is no `.yaml` or `.yml`, or that has other YAML.
    """
    if path.rsplit(".", 1)[-1] not in ("yaml", "yml"):
        raise ValueError(f"Config file must be of a yaml/yml type. {path} supplied")
    arguments: list[str] = []
    model: list[str] = []
    for key, value in _mapping(Path(path).read_text(encoding="utf-8")).items():
        if key == "model":
            model = [str(value)]
        elif isinstance(value, bool):
            arguments += [f"--{key}"] if value else [f"--no-{key}"]
        elif isinstance(value, list):
            arguments += [f"--{key}", *(str(item) for item in value)]
        elif isinstance(value, dict):
            arguments += [f"--{key}", json.dumps(value)]
        else:
            arguments += [f"--{key}", str(value)]
    return model + arguments


def _mapping(text: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    open_list: list[Any] | None = None
    for number, raw_line in enumerate(text.splitlines(), 1):
        line = raw_line.split(" #", 1)[0].rstrip()
        if not line.strip() or line.lstrip().startswith("#") or line.strip() == "---":
            continue
        if line.lstrip().startswith("- ") and open_list is not None:
            open_list.append(_scalar(line.lstrip()[2:]))
            continue
        key, separator, value = line.partition(":")
        if not separator or line[0].isspace():
            raise ValueError(f"config file, line {number}: expected `key: value`, found {line!r}")
        if value.strip():
            result[key.strip()] = _scalar(value)
            open_list = None
        else:
            open_list = []
            result[key.strip()] = open_list
    return result


def _scalar(text: str) -> Any:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        inner = text[1:-1]
        return json.loads(inner) if inner.startswith("{") and text[0] == "'" else inner
    arguments = {"true": True, "false": False, "null": None, "~": None}
    if text.lower() in arguments:
        return arguments[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return text
