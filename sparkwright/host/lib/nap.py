"""Make an engine free its GPU memory without ending its process, and wake the engine.

An engine that does not confirm afterwards that it sleeps, or is awake, counts as neither: the
caller stops its unit, and the next request starts it again.
"""

from sparkwright.host.lib.http import NoAnswer, Server
from sparkwright.host.lib.records import dataclass

#: Time limit of a step in seconds: on an H200, 16 GiB of weights take 16 s into RAM, and 5 s back
#: from the disk.
_STEP = 600.0


@dataclass(frozen=True)
class Step:
    """A POST request to an engine; ``method`` is the method in the body; without a method the body
    is empty.
    """

    path: str
    method: str = ""


@dataclass(frozen=True)
class Nap:
    """Requests by which an engine sleeps and wakes up.

    Attributes:
        state: route that reports whether the engine sleeps, as ``is_sleeping``.
    """

    state: str
    sleep: tuple[Step, ...]
    wake: tuple[Step, ...]


def sleeps(server: Server, state: str) -> bool | None:
    """Return whether an engine sleeps, by its route ``state``; None if the route gives no valid
    answer.
    """
    try:
        document = server.get(state).json()
    except (NoAnswer, ValueError):
        return None
    answer = document.get("is_sleeping") if isinstance(document, dict) else None
    return answer if isinstance(answer, bool) else None


def enter(server: Server, nap: Nap) -> bool:
    """Make an engine sleep, unless it sleeps already. Returns whether the engine sleeps."""
    if sleeps(server, nap.state):
        return True
    return _taken(server, nap.sleep) and sleeps(server, nap.state) is True


def leave(server: Server, nap: Nap) -> bool:
    """Wake an engine that sleeps. Returns whether the engine is awake."""
    return _taken(server, nap.wake) and sleeps(server, nap.state) is False


def _taken(server: Server, steps: tuple[Step, ...]) -> bool:
    requests = ((step.path, {"method": step.method} if step.method else None) for step in steps)
    try:
        return all(server.ask("POST", *each, timeout=_STEP).status == 200 for each in requests)
    except NoAnswer:
        return False
