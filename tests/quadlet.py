"""Quadlets as Podman's generator reads them, and systemd what it makes of them.

Written from podman-systemd.unit(5) and systemd.syntax(7), without a look at what writes them here.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

#: Where distributions have it.
GENERATORS = (
    "/usr/lib/systemd/system-generators/podman-system-generator",
    "/usr/libexec/podman/quadlet",
    "/usr/lib/podman/quadlet",
)
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}


def sections(text: str) -> dict[str, list[tuple[str, str]]]:
    """Section -> its settings, in their order."""
    result: dict[str, list[tuple[str, str]]] = {}
    here: list[tuple[str, str]] = []
    for line in text.split("\n"):
        assert not line.endswith("\\"), "a line goes on in the next one"
        if line.startswith("["):
            assert re.fullmatch(r"\[[A-Za-z]+\]", line)
            here = result.setdefault(line[1:-1], [])
        elif line and not line.startswith(("#", ";")):
            key, is_setting, value = line.partition("=")
            assert is_setting, line
            here.append((key, value))
    return result


def arguments(value: str) -> list[str]:
    """A line's words, as the container gets them: after the generator and systemd."""
    result = list(_arguments(value))
    # The generator drops these two, or what follows them (extract-word's empty word, and the bare
    # semicolon that ends a command).
    assert not {"", ";"} & set(result)
    return [literal(word) for word in result]


def literal(text: str) -> str:
    """Argument that systemd passes for a word without specifiers and variables."""
    plain = re.sub("%%", "", text)
    assert "%" not in plain, f"a specifier: {text}"
    assert "$" not in re.sub(r"\$\$", "", text), f"a variable: {text}"
    return text.replace("%%", "%").replace("$$", "$")


def _arguments(value: str) -> Iterator[str]:
    at, quote, word = 0, "", None
    while at < len(value):
        char = value[at]
        at += 1
        if char == "\\":
            made, used = _unescaped(value[at:])
            word, at = (word or "") + made, at + used
        elif quote:
            if char == quote:
                quote = ""
            else:
                word = (word or "") + char
        elif char in "\"'":
            quote, word = char, word or ""
        elif char in " \t\r":
            if word is not None:
                yield word
            word = None
        else:
            word = (word or "") + char
    assert not quote, "a quote that does not end"
    if word is not None:
        yield word


def _unescaped(text: str) -> tuple[str, int]:
    if match := re.match(r"x([0-9a-fA-F]{2})", text):
        return chr(int(match[1], 16)), 3
    assert text, "a backslash at the end"
    assert text[0] in "\\\"'" or text[0] in _NAMED, f"no escape: {text[:4]}"
    return _NAMED.get(text[0], text[0]), 1


def generated(folder: Path, files: Mapping[str, str]) -> str:
    """Units and messages of Podman's generator for quadlets."""
    own = os.environ.get("QUADLET", "")
    generator = next(
        (generator for generator in (own, *GENERATORS) if generator and Path(generator).exists()),
        None,
    )
    if generator is None:
        pytest.skip("no quadlet: Debian 13's podman has it, and QUADLET names another")
    for path, text in files.items():
        (folder / Path(path).name).write_text(text)
    done = subprocess.run(
        [generator, "--dryrun"], capture_output=True, text=True, check=False,
        env={**os.environ, "QUADLET_UNIT_DIRS": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
