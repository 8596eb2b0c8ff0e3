"""Conversion between the words of a command line and arguments."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sparkwright.engines.tables import release

if TYPE_CHECKING:  # commands that query hosts must not load the catalog
    from sparkwright.catalog.data import ArgumentValue
    from sparkwright.engines.engine import Launch

#: vLLM and SGLang treat an empty list of media domains as every domain; this domain can never exist
#: (RFC 6761).
_NO_DOMAIN = ("media.invalid",)


def read_words(arguments: Sequence[str]) -> dict[str, list[str]]:
    """Read the arguments of a command line: ``--max-model-len 8192`` and ``--max-model-len=8192``
    are ``max_model_len: [8192]``. A command that is one word after ``bash -lc`` is split.
    """
    if any(" --" in word for word in arguments):
        arguments = [part for word in arguments for part in split(word)]
    result: dict[str, list[str]] = {}
    name = ""
    for word in arguments:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = name.replace("-", "_")
            result[name] = [value] if equals else []
        elif name:
            result[name].append(word)
    return result


def split(text: str) -> list[str]:
    """Split a text as a shell does; split a very long or unfinished text at blanks."""
    try:
        return shlex.split(text) if len(text) < 20_000 else text.split()
    except ValueError:
        return text.split()


def argument_words(key: str, value: ArgumentValue) -> list[str]:
    """Words of an argument: ``max_model_len: 8192`` -> ``--max-model-len 8192``, True -> a flag."""
    flag = f"--{key.replace('_', '-')}"
    if value is True:
        return [flag]
    if value is False:
        return [f"--no-{flag[2:]}"]
    if isinstance(value, dict):
        return [flag, json.dumps(value, separators=(",", ":"))]
    if isinstance(value, list):
        return [flag, *map(str, value)]
    return [flag, str(value)]


def has_media_list(version: str | None, first: tuple[int, int, int]) -> bool:
    """Return whether a version can limit media to a list of hosts.

    Args:
        version: a version that is not a number, such as nightly, counts as new.
        first: the first version with the list.
    """
    return not (0, 0, 0) < release(version or "") < first


def media_words(launch: Launch, first: tuple[int, int, int]) -> list[str]:
    """Arguments with the hosts from which an engine fetches media; empty if the version lacks the
    list.
    """
    if not has_media_list(launch.version, first):
        return []
    return ["--allowed-media-domains", *(launch.media_domains or _NO_DOMAIN)]
