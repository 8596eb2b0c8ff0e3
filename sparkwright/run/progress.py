"""Progress of a command's run: which hosts are asked, and which have answered."""

from __future__ import annotations

from collections.abc import Callable

from pyinfra.api.host import Host
from pyinfra.api.state import BaseStateCallback, State

#: Takes a host's name and its latest event.
Notice = Callable[[str, str], None]


class Progress(BaseStateCallback):
    """Reports each host that is connected to, and how its operation ended."""

    def __init__(self, notice: Notice) -> None:
        self._notice = notice

    def host_connect(self, state: State, host: Host) -> None:  # type: ignore[override]
        """Called once per host."""
        self._notice(host.name, "asked")

    def host_connect_error(self, state: State, host: Host, error: Exception) -> None:  # type: ignore[override]
        """Called for a host that can't be reached."""
        self._notice(host.name, "not reached")

    def operation_host_success(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0
    ) -> None:
        """Called when the host's operation is done."""
        self._notice(host.name, "answered")

    def operation_host_error(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0, max_retries: int = 0
    ) -> None:
        """Called when it is not."""
        self._notice(host.name, "failed")
