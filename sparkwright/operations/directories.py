"""Directories on a host, with mode and owner."""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.asking import run_program
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.host import directories as program
from sparkwright.host.directories import DirectoriesRequest, Directory
from sparkwright.host.observation import ObservationRequest
from sparkwright.operations.changing import SERVICES_ROOT, Commands, change, operation


@operation()
def present(
    directories: Sequence[Directory],
    *,
    existing_are_fine: Sequence[str] = (),
    services_root: str = SERVICES_ROOT,
    break_lock: bool = False,
) -> Commands:
    """Have directories with mode and owner. All of them in one remote execution.

    Args:
        directories: parents first.
        existing_are_fine: paths that are made when they are not there and else left alone: they
            may be file systems of their own, or somebody else's.
        services_root: where the host's lock lies.
        break_lock: whether to take the lock from another run.

    **Example:**

    .. code:: python

        directories.present(
            directories=[Directory("/opt/models"), Directory("/srv/cache", 0o750)]
        )
    """
    request = ObservationRequest(
        services_root=services_root, directories=tuple(one.path for one in directories)
    )
    seen = observed(ctx_host.get(), request).directories
    todo = []
    for one in directories:
        state = seen.get(one.path)
        if state is None:
            todo.append((one, f"make {one.path}"))
        elif one.path not in existing_are_fine and (
            (state.mode, state.uid, state.is_directory) != (one.mode, one.uid, True)
        ):
            todo.append((one, f"set mode and owner of {one.path}"))
    pending = [words for _, words in todo]

    def act(host: Host) -> Sequence[str]:
        run_program(host, program, DirectoriesRequest(tuple(one for one, _ in todo)))
        memory(host).forget()
        return pending

    yield from change(
        pending, act, services_root=services_root, break_lock=break_lock,
        otherwise=f"{len(directories)} directories are as desired",
    )  # fmt: skip
