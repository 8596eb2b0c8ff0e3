"""A pyinfra run's memory of a host: observation, changes, and owner of the lock.

pyinfra caches no facts: without this module, ten operations that need the same fact would query the
    host ten times. The state is in ``Host.connector_data``, pyinfra's place for such data, so the
    state exists as long as the host object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyinfra.api.host import Host

if TYPE_CHECKING:
    from sparkwright.host.observe import Observation, ObservationRequest

_KEY = "sparkwright"
#: Default directory of services, state and locks on a host, and default directory of the models.
SERVICES_ROOT, MODELS_ROOT = "/opt/sparkwright", "/opt/models"


@dataclass
class HostMemory:
    """State of a host in this run.

    Attributes:
        services_root, models_root: sparkwright's directories on the host.
        break_lock: whether this run takes the host's lock from another run.
        stale: whether the host was changed since it was observed.
        asked, observation: the last request to the host and its answer; None before the first
            request.
        changes: changes by operations, as text, in order.
        pending: changes that ``--dry`` shows, by pyinfra's hash of the operation.
        others: foreign operations that changed the host, by pyinfra's hash.
        guard: function called before a foreign operation changes the host; raises HostError to
            prevent the change.
        batch: the host's place in the roll-out: ``batch 2 of 3``; empty if no service is switched.
        failure: reason why an operation failed; None without a failure.
        locked: services_root of the lock that this run holds; None without a lock.
        executions: number of all remote executions so far.
        runtimes: installations of the fetch program that this run has made.
    """

    services_root: str = SERVICES_ROOT
    models_root: str = MODELS_ROOT
    break_lock: bool = False
    stale: bool = False
    asked: ObservationRequest | None = None
    observation: Observation | None = None
    changes: list[str] = field(default_factory=list)
    pending: dict[str | None, list[str]] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    guard: Callable[[], None] | None = None
    batch: str = ""
    failure: str | None = None
    locked: str | None = None
    executions: int = 0
    runtimes: set[str] = field(default_factory=set)

    def forget(self) -> None:
        """Drop the observation of a changed host, so that the next use observes the host again."""
        self.stale = True


def memory(host: Host) -> HostMemory:
    """Memory of a host: its roots and ``break_lock`` come from the host's data."""
    if _KEY not in host.connector_data:
        host.connector_data[_KEY] = HostMemory(
            services_root=str(host.data.get("services_root", SERVICES_ROOT)),
            models_root=str(host.data.get("models_root", MODELS_ROOT)),
            break_lock=host.data.get("break_lock") is True,
        )
    remembered: HostMemory = host.connector_data[_KEY]
    return remembered
