"""Files on a host: compared in one observation, and written in one execution."""

from collections.abc import Iterable, Mapping
from difflib import unified_diff
from itertools import islice

import click
from pyinfra.context import ctx_host

from sparkwright.facts.observation import observed
from sparkwright.host import write_files as program
from sparkwright.host.observe import Observation, ObservationRequest
from sparkwright.operations.lib.changing import Commands, act_by, change, operation
from sparkwright.plan.missing import differs
from sparkwright.text.visible import visible

#: Text and mode, by path.
Files = Mapping[str, tuple[str, int]]
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@operation()
def present(files: Files) -> Commands:
    """Write files with these texts and modes, owned by root.

    ``--diff`` shows each file, except files that only root may read: they may contain secrets.

    Args:
        files: text and mode by path; directories are made as needed.

    **Example:**

    .. code:: python

        files.present(files={"/etc/motd": ("Models are served here.\\n", 0o644)})
    """
    state = observed(ctx_host.get(), ObservationRequest(files=tuple(files)))
    yield from change(
        unwritten(files, state), act_by(program, dict(files)),
        otherwise=f"{len(files)} files are as desired",
    )  # fmt: skip


def unwritten(files: Files, state: Observation) -> list[str]:
    """Describe the files that differ or are missing; ``--diff`` shows them."""
    missing = missing_files(files, state)
    show(missing)
    return [f"write {path}" for path in missing]


def unlike(
    files: Files, units: Iterable[str], state: Observation, last: str, removal: str
) -> list[str]:
    """Describe the pending changes of files and their units.

    Args:
        files: desired files; empty to remove all of them from the host.
        last: path of the file that is removed last; while it exists, ``removal`` is pending.
    """
    if files:
        return [*unwritten(files, state), *stopped(units, state)]
    return [removal] if state.files.get(last) else []


def missing_files(files: Files, state: Observation) -> Files:
    """Files that are not on the host with this text and mode."""
    return {path: file for path, file in files.items() if differs(state.files.get(path), *file)}


def stopped(units: Iterable[str], state: Observation) -> list[str]:
    """Describe the units that do not run."""
    return [
        f"start {unit}"
        for unit in units
        if state.units.get(unit, {}).get("ActiveState") != "active"
    ]


def show(files: Files, instead_of: Mapping[str, str] | None = None) -> None:
    """Show files beside the host's files, with ``--diff``.

    Files that only root may read, and sparkwright's programs, are not shown.

    Args:
        instead_of: path -> another path that the file replaces.
    """
    host = ctx_host.get()
    shown = {
        path: (instead_of or {}).get(path, path)
        for path, (_, mode) in files.items()
        if mode & 0o040 and not path.endswith(".py")
    }
    if host.state.config.DIFF and shown:
        texts = observed(host, ObservationRequest(texts=tuple(shown.values()))).texts
        for path, former in shown.items():
            show_diff(path, texts.get(former), files[path][0])


def show_diff(path: str, before: str | None, after: str) -> None:
    """Show the text of a file that changes, with ``--diff``."""
    host = ctx_host.get()
    if not host.state.config.DIFF or before == after:
        return
    host.log(f"{'Will create' if before is None else 'Will change'} {click.style(path, bold=True)}")
    old, new = (before or "").splitlines(), after.splitlines()
    for line in islice(unified_diff(old, new, lineterm="", n=2), 2, None):
        host.log(f"    {click.style(visible(line), fg=_COLOURS.get(line[:1]))}")
