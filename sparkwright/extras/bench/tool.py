"""Where the load generator is installed: a venv of its own, made by ``make bench-tools``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sparkwright.config.places import BENCH_PINS, INSTALLED
from sparkwright.extras.bench.aiperf import NAME
from sparkwright.findings.user_error import UserError, mistake

#: Names another venv than the project's ``.venv-bench``.
VARIABLE = "SPARKWRIGHT_BENCH_TOOLS"
FOLDER = Path(".venv-bench")
_INSTALL = (
    f"python3 -m venv {FOLDER} && {FOLDER}/bin/pip install --require-hashes -r {BENCH_PINS}"
    if INSTALLED
    else "make bench-tools"
)
_REMEDY = f"{_INSTALL} (once; 1.2 GB, some minutes), or name its venv in {VARIABLE}"


@dataclass(frozen=True)
class Tool:
    """The installed generator: its program and version."""

    program: Path
    version: str


def find(environment: Mapping[str, str] = os.environ) -> Tool:
    """The generator at the pinned version.

    Raises:
        UserError: when it is not there, or of another version: figures would not compare.
    """
    folder = Path(environment.get(VARIABLE) or FOLDER).absolute()
    program = folder / "bin" / NAME
    found = [
        path.name.removesuffix(".dist-info").partition("-")[2]
        for path in folder.glob(f"lib/python3*/site-packages/{NAME}-*.dist-info")
    ]
    if not program.is_file() or not found:
        raise UserError(
            [mistake(f"load generator {NAME}", f"it is not installed in {folder}", _REMEDY)]
        )
    wanted = pinned(BENCH_PINS.read_text(encoding="utf-8"))
    if wanted and found[0] != wanted:
        raise UserError(
            [mistake(f"load generator {NAME}", f"{folder} has version {found[0]}, not {wanted}",
                     _REMEDY)]
        )  # fmt: skip
    return Tool(program, found[0])


def pinned(text: str) -> str | None:
    """The generator's version in a file of pins."""
    match = re.search(rf"^{NAME}==(\S+)", text, re.MULTILINE)
    return match[1] if match else None
