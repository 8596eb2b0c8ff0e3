"""Directories on a host, with mode and owner."""

from collections.abc import Sequence

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.asking import ask
from sparkwright.facts.observation import observed
from sparkwright.host import directories as program
from sparkwright.host.directories import Directory
from sparkwright.host.observe import ObservationRequest
from sparkwright.operations.lib.changing import Commands, change, operation


@operation()
def present(directories: Sequence[Directory], *, existing_are_fine: Sequence[str] = ()) -> Commands:
    """Make directories with mode and owner. All directories take one remote execution.

    Args:
        directories: parents first.
        existing_are_fine: paths that are made if missing and otherwise left unchanged, since they
            may be mounts or belong to another program.

    **Example:**

    .. code:: python

        from sparkwright.operations import Directory, directories

        directories.present(
            directories=[Directory("/opt/models"), Directory("/srv/cache", 0o750)]
        )
    """
    request = ObservationRequest(directories=tuple(each.path for each in directories))
    states = observed(ctx_host.get(), request).directories
    todo = {}
    for directory in directories:
        state = states.get(directory.path)
        if state is None:
            todo[directory] = f"make {directory.path}"
        elif directory.path not in existing_are_fine and (
            (state.mode, state.uid, state.is_directory) != (directory.mode, directory.uid, True)
        ):
            todo[directory] = f"set mode and owner of {directory.path}"
    pending = list(todo.values())

    def act(host: Host) -> Sequence[str]:
        ask(host, program, tuple(todo), object)
        return pending

    yield from change(pending, act, otherwise=f"{len(directories)} directories are as desired")
