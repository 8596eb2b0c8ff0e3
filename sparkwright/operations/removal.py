"""Removal of services from a host, or of everything that sparkwright installed."""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.facts.asking import ask
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.host import removal as program
from sparkwright.host.bootstrap import undo
from sparkwright.host.bootstrap.prepare import RECORD
from sparkwright.host.bootstrap.undo import UndoAnswer
from sparkwright.host.fabric_addresses import KEPT
from sparkwright.host.models.document import USAGE
from sparkwright.host.observe import ObservationRequest
from sparkwright.host.removal import RemovalAnswer, RemovalRequest
from sparkwright.operations.lib.changing import Commands, change, operation, unheard

_FABRIC = f"{KEPT}/devices"
_USAGE = str(PurePosixPath(USAGE).parent)
_LEFT = "bootstrap's changes (--bootstrap undoes them)"


@operation()
def removed(
    services: Sequence[str] | None = None,
    *,
    weights: bool = False,
    bootstrap: bool = False,
    answered: Callable[[RemovalAnswer], object] = unheard,
) -> Commands:
    """Remove services, or everything that sparkwright installed, from the host.

    After a complete removal the host is as before: containers that a switch stopped are started
    again.

    Args:
        services: names; None for everything.
        weights: whether the models are also removed.
        bootstrap: whether to undo bootstrap, after all other parts are removed.
        answered: function called with the removed and the remaining parts.

    **Example:**

    .. code:: python

        removal.removed(services=["chat"])
    """
    host_memory = memory(ctx_host.get())
    root, models = host_memory.services_root, host_memory.models_root
    homes = {f"{root}/services/{name}": name for name in services or ()}
    directories = (models, root, _USAGE, *homes)
    request = ObservationRequest(directories=directories, files=(RECORD, _FABRIC))
    state = observed(ctx_host.get(), request)
    there = {path for path, directory in state.directories.items() if directory}
    recorded = bool(state.files.get(RECORD))
    if services is None:
        undoes = (
            (root in there, f"remove {root} and its images"),
            (weights and models in there, f"remove the models below {models}"),
            (bool(state.files.get(_FABRIC)), "remove the fabric's addresses"),
            (bootstrap and recorded, "undo bootstrap's changes"),
        )
        pending = [f"remove {unit}" for unit in state.unit_files]
        pending += [line for applies, line in undoes if applies]
        left = [f"{models}: the models (--weights removes them)"] * (models in there)
        left += [f"{USAGE}: the use of API keys"] * (_USAGE in there)
        left += [_LEFT] * (recorded and not bootstrap)
    else:
        pending = [f"remove service {name}" for home, name in homes.items() if home in there]
        left = [f"service {name!r}: this service does not exist" for name in services]
    if not pending:
        answered(RemovalAnswer((), tuple(left)))

    def act(host: Host) -> Sequence[str]:
        chosen = tuple(services) if services is not None else None
        request = RemovalRequest(models, root, chosen, weights)
        answer = ask(host, program, request, RemovalAnswer, timeout=600)
        if bootstrap and recorded:
            undone = ask(host, undo, None, UndoAnswer, timeout=1800)
            answer = RemovalAnswer((*answer.done, *undone.done), (*answer.left, *undone.left))
        elif services is None and recorded:
            answer = RemovalAnswer(answer.done, (*answer.left, _LEFT))
        if services is None:
            host_memory.locked = None  # the lock was among the removed files
        answered(answer)
        return [f"removed {thing}" for thing in answer.done]

    yield from change(
        pending, act,
        otherwise="the host has no such service" if services else "sparkwright is not on the host",
    )  # fmt: skip
