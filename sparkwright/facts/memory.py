"""What this run of pyinfra remembers of a host: what was observed, what was done, who holds it.

pyinfra caches no facts: without this, ten operations that need to know the same of a host would
ask it ten times. It lies in ``Host.connector_data``, pyinfra's own place for data of others, so it
lives as long as the host object and no longer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyinfra.api.host import Host

if TYPE_CHECKING:
    from sparkwright.host.contracts.observation import Observation, ObservationRequest

_KEY = "sparkwright"


@dataclass
class HostMemory:
    """One host in this run.

    Attributes:
        stale: whether the host was changed since it was asked.
        accounted: operations whose changes ``stale`` knows of, by pyinfra's hash.
        asked, observation: the last question to the host and its answer; None before.
        changes: what operations of ours changed, in words, in their order.
        failure: why an operation failed; None while none did.
        locked: services_root of the lock that this run holds; None without one.
        executions: remote executions so far, ours and others'.
        runtimes: installations of the fetch program that this run has made.
    """

    stale: bool = False
    accounted: set[str] = field(default_factory=set)
    asked: ObservationRequest | None = None
    observation: Observation | None = None
    changes: list[str] = field(default_factory=list)
    failure: str | None = None
    locked: str | None = None
    executions: int = 0
    runtimes: set[str] = field(default_factory=set)

    def forget(self) -> None:
        """The host was changed: what is known of it has to be asked again, where it is needed."""
        self.stale = True


def memory(host: Host) -> HostMemory:
    """What is remembered of a host."""
    found = host.connector_data.setdefault(_KEY, HostMemory())
    assert isinstance(found, HostMemory)
    return found
