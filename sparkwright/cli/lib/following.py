"""Looks at the hosts as a run of pyinfra has them, one after another, until it is left."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sparkwright.cli.lib.hosts import command_line, tell_what_is_broken
from sparkwright.text.visible import visible_but_colours

#: Seconds after which a reader may do something else.
_QUIET = 0.25


class Following:
    """The lines that an operation feeds."""

    def __init__(
        self, process: subprocess.Popen[bytes], fed: IO[bytes], said: IO[bytes], answers: Path
    ) -> None:
        self._process, self._fed, self._said, self._answers = process, fed, said, answers

    def __iter__(self) -> Iterator[dict[str, Any] | None]:
        """Each line; None where there was none for a quarter of a second. Ends with pyinfra."""
        rest = b""
        while True:
            if not select.select([self._fed], [], [], _QUIET)[0]:
                yield None
                continue
            data = self._fed.read(1 << 16)
            if not data:
                self._process.wait()
                return
            *lines, rest = (rest + data).split(b"\n")
            yield from map(json.loads, lines)

    def refused(self) -> dict[str, str]:
        """After the end: the hosts that never were asked, and why."""
        if not self._answers.exists():
            return {}
        found = json.loads(self._answers.read_text(encoding="utf-8"))
        return {name: said["refused"] for name, said in found.items() if said["refused"]}

    def words(self) -> str:
        """After the end: what pyinfra said."""
        self._said.seek(0)
        return visible_but_colours(self._said.read().decode(errors="replace"))


@contextmanager
def following(
    inventory: Path,
    limit: tuple[str, ...],
    overrides: tuple[str, ...],
    operation: str,
    *,
    planless: bool = False,
    **arguments: str | bool | float | None,
) -> Iterator[Following]:
    """Run an operation that feeds a line of JSON for each look at a host; end it when left.

    Args:
        operation: a role's function, which takes ``answers`` and ``feed``, the descriptor of its
            lines.
        planless: as for ``ask_hosts``.
    """
    ours, theirs = os.pipe()
    with (
        os.fdopen(ours, "rb", buffering=0) as fed,
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryDirectory(prefix="sparkwright-") as folder,
    ):
        answers = Path(folder, "answers.json")
        words = command_line(
            inventory,
            limit,
            overrides,
            operation,
            planless=planless,
            dry=False,
            feed=theirs,
            **arguments,
        )
        process = subprocess.Popen(
            [*words, f"answers={answers}"], stdout=said, stderr=said, pass_fds=(theirs,)
        )
        os.close(theirs)
        try:
            yield Following(process, fed, said, answers)
        finally:
            process.terminate()
            process.wait()
            tell_what_is_broken(Path(f"{answers}.progress"))
