"""The files that a user edits, judged before pyinfra reads them: no traceback for a typo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sparkwright.config import python_files
from sparkwright.config.inventory import read_inventory, wrong_endings
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake


def check(
    inventory: str,
    group_data: Iterable[str],
    overrides: Iterable[str] = (),
    *,
    own_folder: bool = True,
) -> None:
    """Read inventory and group_data files once, alone, as `sparkwright check` does.

    Args:
        group_data: further folders of them.
        overrides: ``key=value``, pyinfra's ``--data``.
        own_folder: whether the site's group_data is read, or the inventory alone.

    Raises:
        UserError: with file and line of everything that can't be read or run.
    """
    problems: list[Finding] = []
    path = Path(inventory)
    folders = [Path(folder) for folder in group_data]
    if path.suffix == ".py" or (inventory and path.exists()):
        problems += _inventory_problems(path, overrides, own_folder=own_folder)
    elif own_folder:  # hosts by name: their settings are in group_data alone
        folders.insert(0, Path("group_data"))
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
        problems += wrong_endings(folder)
        for file in sorted(folder.glob("*.py")):
            try:
                _try(file)
            except UserError as error:
                problems += error.findings
    if problems:
        raise UserError(problems)


def _inventory_problems(
    path: Path, overrides: Iterable[str], *, own_folder: bool
) -> Sequence[Finding]:
    try:
        read_inventory(path, overrides, for_pyinfra=True, group_data=own_folder)
    except UserError as error:
        return error.findings
    return ()


def _try(path: Path) -> None:
    tree, code = python_files.source(path)
    if not python_files.imports_pyinfra(tree):
        python_files.run(path, code)
