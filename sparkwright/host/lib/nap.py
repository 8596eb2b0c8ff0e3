"""Has an engine give its memory back without the end of its process, and wakes it.

An engine that does not say afterwards that it sleeps, or is awake, counts as neither: the caller
stops its unit, and the next request starts it anew.
"""

from sparkwright.host.lib.http import NoAnswer, Server
from sparkwright.host.lib.records import dataclass

#: Seconds of one step: 16 s for 16 GiB of weights into RAM on an H200, 5 s back from the disk.
_STEP = 600.0


@dataclass(frozen=True)
class Step:
    """A POST request of an engine's; ``method`` is of its body, which is empty without one."""

    path: str
    method: str = ""


@dataclass(frozen=True)
class Nap:
    """Requests by which an engine sleeps and wakes up.

    Attributes:
        state: route that says whether it sleeps, as ``is_sleeping``.
    """

    state: str
    sleep: tuple[Step, ...]
    wake: tuple[Step, ...]


def sleeps(server: Server, state: str) -> bool | None:
    """Whether an engine sleeps, by its route ``state``; None where it does not say."""
    try:
        document = server.get(state).json()
    except (NoAnswer, ValueError):
        return None
    answer = document.get("is_sleeping") if isinstance(document, dict) else None
    return answer if isinstance(answer, bool) else None


def enter(server: Server, nap: Nap) -> bool:
    """Have an engine sleep, unless it does. Returns whether it sleeps."""
    if sleeps(server, nap.state):
        return True
    return _taken(server, nap.sleep) and sleeps(server, nap.state) is True


def leave(server: Server, nap: Nap) -> bool:
    """Wake an engine that sleeps. Returns whether it is awake."""
    return _taken(server, nap.wake) and sleeps(server, nap.state) is False


def _taken(server: Server, steps: tuple[Step, ...]) -> bool:
    for step in steps:
        body = {"method": step.method} if step.method else None
        try:
            if server.ask("POST", step.path, body, timeout=_STEP).status != 200:
                return False
        except NoAnswer:
            return False
    return True
