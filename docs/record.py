"""Record the output of commands on the virtual fleet for the pages: ``python -m docs.record``.

A page shows an output between two marks, ``<!-- output: NAME -->`` and ``<!-- /output -->``.
`docs.generate` inserts the recorded output, so a page never shows an invented output.
"""

import re
import shlex
import subprocess
import sys
from itertools import dropwhile, groupby, takewhile
from pathlib import Path
from typing import Any

import yaml

from sparkwright.config.places import DATA

COMMANDS, DIRECTORY = "docs/outputs.yaml", "docs/outputs"
BEGIN = "<!-- output: "
_BLOCK = re.compile(r"(<!-- output: ([a-z-]+) -->\n).*?(<!-- /output -->)", re.DOTALL)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def commands(root: Path) -> dict[str, dict[str, Any]]:
    """Name of an output -> its command and the other keys of docs/outputs.yaml."""
    data: dict[str, dict[str, Any]] = yaml.safe_load((root / COMMANDS).read_text("utf-8"))
    return data


def inserted(page: str, root: Path) -> str:
    """A page with the recorded outputs between its marks; an output without a record is empty."""

    def block(match: re.Match[str]) -> str:
        command = commands(root)[match[2]]["command"]
        file = root / DIRECTORY / f"{match[2]}.txt"
        if not file.is_file():
            return match[1] + match[3]
        return f"{match[1]}```text\n$ {command}\n{file.read_text('utf-8')}```\n{match[3]}"

    return _BLOCK.sub(block, page)


def kept(lines: list[str], item: dict[str, Any]) -> list[str]:
    """Lines that a page shows, from prefix `from` to prefix `until`, with dots for lines like
    `omit`."""
    lines = [*dropwhile(lambda line: not line.startswith(item.get("from", "")), lines)]
    if end := item.get("until"):
        lines = [*takewhile(lambda line: not line.startswith(end), lines)]
    if omitted := item.get("omit"):
        runs = groupby(lines, lambda line: re.search(omitted, line) is not None)
        lines = [line for gone, run in runs for line in (["    ..."] if gone else run)]
    return lines


def run(root: Path, command: str, code: int) -> list[str]:
    """Lines of a command's output, without colours.

    Raises:
        SystemExit: the command exits with another code.
    """
    arguments = shlex.split(command)
    own = Path(sys.executable).with_name(arguments[0])
    done = subprocess.run(
        [own if own.is_file() else arguments[0], *arguments[1:]],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900,
    )  # fmt: skip
    if done.returncode != code:
        sys.exit(f"{command}: exit {done.returncode}, {code} expected\n{done.stdout}")
    text = _ESCAPES.sub("", done.stdout).replace(f"{root}/", "")
    return [line.rstrip() for line in text.splitlines()]


def record(root: Path, name: str, item: dict[str, Any]) -> None:
    """Keep the output of a command, run between the commands of `before` and `after`."""
    for command in item.get("before", ()):
        run(root, command, 0)
    lines = kept(run(root, item["command"], item.get("exit", 0)), item)
    for command in item.get("after", ()):
        run(root, command, 0)
    (root / DIRECTORY / f"{name}.txt").write_text("\n".join(lines).strip("\n") + "\n", "utf-8")


if __name__ == "__main__":
    wanted = set(sys.argv[1:])
    for output, item in commands(DATA).items():
        if not wanted or output in wanted:
            record(DATA, output, item)
