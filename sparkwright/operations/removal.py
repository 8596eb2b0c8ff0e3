"""Taking services off a host, or everything that is sparkwright's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyinfra.api.host import Host
from pyinfra.api.operation import operation
from pyinfra.context import ctx_host

from sparkwright.facts.asking import ask
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.host import removal as program
from sparkwright.host.bootstrap import undo
from sparkwright.host.bootstrap.prepare import RECORD
from sparkwright.host.bootstrap.undo import UndoAnswer, UndoRequest
from sparkwright.host.fabric_addresses import KEPT
from sparkwright.host.observation import ObservationRequest
from sparkwright.host.removal import RemovalAnswer, RemovalRequest
from sparkwright.operations.changing import MODELS_ROOT, SERVICES_ROOT, Commands, change

_FABRIC = f"{KEPT}/devices"
_LEFT = "what bootstrap installed and wrote (--bootstrap undoes it)"


@operation()
def removed(
    services: Sequence[str] | None = None,
    *,
    weights: bool = False,
    bootstrap: bool = False,
    models_root: str = MODELS_ROOT,
    services_root: str = SERVICES_ROOT,
    answered: Callable[[RemovalAnswer], None] | None = None,
    break_lock: bool = False,
) -> Commands:
    """Have services, or everything of sparkwright's, off the host.

    With everything the host is as it was found: containers that a switch stopped are started again.

    Args:
        services: names; None for everything.
        weights: whether the models go too.
        bootstrap: whether what bootstrap did is undone, after everything else is gone.
        answered: called with what was removed and what was left.
        break_lock: whether to take the lock from another run.
    """
    homes = {f"{services_root}/services/{name}": name for name in services or ()}
    seen = observed(
        ctx_host.get(),
        ObservationRequest(
            models_root=models_root,
            services_root=services_root,
            directories=(models_root, services_root, *homes),
            files=(RECORD, _FABRIC),
        ),
    )
    there = {path for path, state in seen.directories.items() if state}
    if services is None:
        pending = [f"remove {unit}" for unit in seen.unit_files]
        pending += [f"remove {services_root} and its images"] if services_root in there else []
        if weights and models_root in there:
            pending.append(f"remove the models below {models_root}")
        left = [f"{models_root}: the models (--weights removes them)"] * (models_root in there)
        pending += ["take the fabric's addresses back"] if seen.files.get(_FABRIC) else []
        if seen.files.get(RECORD):
            pending += ["undo what bootstrap did"] if bootstrap else []
            left += [] if bootstrap else [_LEFT]
    else:
        pending = [f"remove service {name}" for home, name in homes.items() if home in there]
        left = [f"service {name!r}: there is none" for name in services]
    if answered and not pending:
        answered(RemovalAnswer((), tuple(left)))

    def act(host: Host) -> Sequence[str]:
        chosen = tuple(services) if services is not None else None
        request = RemovalRequest(models_root, services_root, chosen, weights)
        answer = ask(host, program, request, RemovalAnswer, timeout=600)
        if bootstrap and seen.files.get(RECORD):
            undone = ask(host, undo, UndoRequest(), UndoAnswer, timeout=1800)
            answer = RemovalAnswer((*answer.done, *undone.done), (*answer.left, *undone.left))
        elif services is None and seen.files.get(RECORD):
            answer = RemovalAnswer(answer.done, (*answer.left, _LEFT))
        memory(host).forget()
        if services is None:
            memory(host).locked = None  # the lock went with the rest
        if answered:
            answered(answer)
        return [f"removed {one}" for one in answer.done]

    yield from change(
        pending, act, services_root=services_root, break_lock=break_lock,
        otherwise="no such service is here" if services else "nothing of sparkwright's is here",
    )  # fmt: skip
