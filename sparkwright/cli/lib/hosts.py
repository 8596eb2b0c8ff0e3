"""Querying the hosts from the command line, by pyinfra without its output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import click

from sparkwright.cli.lib import connecting, progress
from sparkwright.cli.lib.output import echo
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.text.visible import paragraph, visible_but_colours


def pyinfra() -> str:
    """The pyinfra beside this Python, or the one of the path.

    Raises:
        UserError: when there is none.
    """
    beside = Path(sys.executable).with_name("pyinfra")
    found = str(beside) if beside.exists() else shutil.which("pyinfra")
    if found is None:
        raise UserError([mistake("command line", "pyinfra is not installed", "see the README")])
    return found


def command_line(
    inventory: Path,
    limit: tuple[str, ...],
    overrides: tuple[str, ...],
    operation: str,
    *,
    planless: bool = False,
    dry: bool = False,
    **arguments: str | bool | float | None,
) -> list[str]:
    """pyinfra's, for an operation with arguments, that nobody has to confirm.

    Args:
        planless: as for ``ask_hosts``.
        dry: whether it only says what would be done.
    """
    words = [pyinfra(), "--dry" if dry else "--yes", *connecting.given()]
    # pyinfra knows no group of all hosts by that name; everywhere else it is one.
    chosen = () if "all" in limit else limit
    words += [word for name in chosen for word in ("--limit", name)]
    words += [word for pair in overrides for word in ("--data", pair)]
    # JSON, since pyinfra would read a release's name such as 123456789012 as a number.
    arguments = {**arguments, "planless": planless or None}
    given = [f"{key}={json.dumps(value)}" for key, value in arguments.items() if value is not None]
    return [*words, str(inventory), operation, *given]


def become(words: list[str]) -> NoReturn:
    """Be pyinfra from here on: it shows every host's progress, and its exit code is ours."""
    sys.stdout.flush()
    os.execv(words[0], words)


def ask_hosts(
    inventory: Path,
    limit: tuple[str, ...],
    overrides: tuple[str, ...],
    operation: str,
    *,
    planless: bool = False,
    **arguments: str | bool | None,
) -> tuple[dict[str, Any], list[str]]:
    """Run one operation on the hosts.

    Args:
        operation: a role's function, which takes ``answers`` and, with planless, ``planless``.
        planless: whether it goes by what the hosts say where the plan is broken: registry or hub
            can't be asked, the lock is broken, group_data has a mistake. One line on standard error
            then says what is broken; nothing is planned (``HostRun.plan_known`` is False, its
            services are empty), and ``settings`` has the roots alone. Without, such a run ends with
            exit code 2 before any host is connected to.

    Returns:
        By host, what it answered; and the hosts that did not, which are named on standard error. A
        missing answer is a failure to every command: nobody knows what such a host runs.

    Raises:
        SystemExit: with pyinfra's code and words, when no host was contacted at all.
    """
    with tempfile.TemporaryDirectory(prefix="sparkwright-") as folder:
        file = Path(folder, "answers.json")
        words = command_line(
            inventory, limit, overrides, operation, planless=planless, dry=False, **arguments
        )
        told = Path(f"{file}.progress")
        with progress.shown(told):
            done = subprocess.run(
                [*words, f"answers={file}"],
                stdout=sys.stderr if progress.said("verbose") else subprocess.PIPE,
                stderr=sys.stderr if progress.said("verbose") else subprocess.PIPE,
                text=True,
                check=False,
            )
        if not file.exists():
            sys.stderr.write(visible_but_colours(done.stderr or done.stdout or ""))
            sys.exit(done.returncode or 1)
        found = json.loads(file.read_text(encoding="utf-8"))
        tell_what_is_broken(told)
    for name, said in found.items():
        if said["answer"] is None:
            why = said["refused"] or "no answer"
            echo(f"{click.style(name, fg='red')}: {paragraph(why)}", err=True)
    answers = {n: said["answer"] for n, said in found.items() if said["answer"] is not None}
    return answers, [name for name in found if name not in answers]


def tell_what_is_broken(told: Path) -> None:
    """Say in one line what of the plan is broken, where the run found that."""
    for one in progress.events(told):
        if "plan" in one:
            echo(one["plan"], err=True)
