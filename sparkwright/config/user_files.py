"""The Python files that a user edits, checked before pyinfra runs them: no traceback for a typo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake


def check(
    inventory: str, group_data: Iterable[str], *, own_folder: str | None = "group_data"
) -> None:
    """Compile and run inventory and group_data files once, alone.

    Args:
        group_data: folders of the command line.
        own_folder: the site's; None where the inventory alone matters.

    Raises:
        UserError: with file and line of every file that can't be read or run.
    """
    problems: list[Finding] = []
    files = [Path(inventory)] if inventory.endswith(".py") else []
    folders = [*([Path(own_folder)] if own_folder else []), *map(Path, group_data)]
    for folder in map(Path, group_data):
        if not folder.is_dir():
            problems.append(
                mistake(
                    f"command line: --group-data {folder}",
                    "this folder does not exist",
                    "check its spelling",
                )
            )
    for folder in folders:
        files.extend(sorted(folder.glob("*.py")))
    for path in files:
        if not path.is_file():
            problems.append(
                mistake(
                    f"command line: {path}",
                    "this file does not exist",
                    "name an existing inventory, such as inventory/lab.py",
                )
            )
            continue
        problem = _try(path)
        if problem:
            problems.append(problem)
    if problems:
        raise UserError(problems)


def _try(path: Path) -> Finding | None:
    text = path.read_text(encoding="utf-8")
    try:
        code = compile(text, str(path), "exec")
    except SyntaxError as error:
        return mistake(
            f"{path}: line {error.lineno}", f"not valid Python: {error.msg}", "fix that line"
        )
    if "pyinfra" in text:
        return None  # it asks for pyinfra's own context, which is not there yet
    try:
        exec(code, {"__file__": str(path)})
    except Exception as error:
        trace = error.__traceback__
        line = 0
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == str(path):
                line = trace.tb_lineno
            trace = trace.tb_next
        return mistake(f"{path}: line {line}", f"{type(error).__name__}: {error}", "fix that line")
    return None


def matches(pattern: str, hosts: Sequence[str]) -> bool:
    """Whether a --limit pattern names any host, as pyinfra matches it."""
    return any(fnmatch(host, pattern) for host in hosts)
