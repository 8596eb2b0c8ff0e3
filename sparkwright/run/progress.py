"""What a command of the command line is told while it waits for the hosts: a line per event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyinfra.api.host import Host
from pyinfra.api.state import BaseStateCallback, State


def note(answers: str, event: dict[str, Any]) -> None:
    """Add an event to the file beside the answers."""
    with Path(f"{answers}.progress").open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


class Progress(BaseStateCallback):
    """Notes for each host that it is connected to, and how its question ended."""

    def __init__(self, answers: str) -> None:
        self._answers = answers

    def host_connect(self, state: State, host: Host) -> None:  # type: ignore[override]
        """Called once per host."""
        self._note(host, "asked")

    def host_connect_error(self, state: State, host: Host, error: Exception) -> None:  # type: ignore[override]
        """Called for a host that can't be reached."""
        self._note(host, "not reached")

    def operation_host_success(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0
    ) -> None:
        """Called when the host's question is answered."""
        self._note(host, "answered")

    def operation_host_error(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0, max_retries: int = 0
    ) -> None:
        """Called when it is not."""
        self._note(host, "failed")

    def _note(self, host: Host, event: str) -> None:
        note(self._answers, {"host": host.name, "event": event})
