"""Record the output of commands on the virtual fleet for the pages: ``python -m docs.record``.

A page shows an output between two marks, ``<!-- output: NAME -->`` and ``<!-- /output -->``.
`docs.generate` writes there what was recorded, so a page never shows an output that was made up.
"""

import re
import shlex
import subprocess
import sys
from itertools import dropwhile
from pathlib import Path
from typing import Any

import yaml

from sparkwright.config.places import DATA

COMMANDS, DIRECTORY = "docs/outputs.yaml", "docs/outputs"
BEGIN = "<!-- output: "
_BLOCK = re.compile(r"(<!-- output: ([a-z-]+) -->\n).*?(<!-- /output -->)", re.DOTALL)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def commands(root: Path) -> dict[str, dict[str, Any]]:
    """Name of an output -> its command, exit code and number of lines."""
    data: dict[str, dict[str, Any]] = yaml.safe_load((root / COMMANDS).read_text("utf-8"))
    return data


def inserted(page: str, root: Path) -> str:
    """A page with the recorded outputs between its marks."""

    def block(match: re.Match[str]) -> str:
        command = commands(root)[match[2]]["command"]
        text = (root / DIRECTORY / f"{match[2]}.txt").read_text("utf-8")
        return f"{match[1]}```text\n$ {command}\n{text}```\n{match[3]}"

    return _BLOCK.sub(block, page)


def record(root: Path, name: str, command: str, code: int, begin: str) -> None:
    """Run a command and keep its output without colours, from the first line with a begin on.

    Raises:
        SystemExit: when the command ends with another code.
    """
    arguments = shlex.split(command)
    program = Path(sys.executable).with_name(arguments[0])
    run = subprocess.run(
        [program, *arguments[1:]], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=900,
    )  # fmt: skip
    if run.returncode != code:
        sys.exit(f"{command}: exit {run.returncode}, {code} expected\n{run.stdout}")
    text = _ESCAPES.sub("", run.stdout).replace(f"{root}/", "")
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [*dropwhile(lambda line: not line.startswith(begin), lines)]
    (root / DIRECTORY / f"{name}.txt").write_text("\n".join(kept).strip("\n") + "\n", "utf-8")


if __name__ == "__main__":
    wanted = set(sys.argv[1:])
    for output, item in commands(DATA).items():
        if not wanted or output in wanted:
            record(DATA, output, item["command"], item.get("exit", 0), item.get("from", ""))
