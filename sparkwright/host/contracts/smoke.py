"""Asking a service for real answers: the smoke test, and the gate of a switch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SmokeRequest:
    """What is asked of a service, also as the gate in release.json and request.json.

    Attributes:
        address, port: of vLLM, from its own host.
        secrets: file with the API key.
        boot_seconds: how long a first boot may take.
        first_answer_seconds: how long an answer may take.
        warm_ups: longer answers before the service counts as ready.
        door: address and port of the host's own proxy; None where there is none.
        speculates: whether a drafter must be seen at work.
        thinking: whether the model may think.
        max_tokens: budget of an answer.
        hasty: whether one crash is enough to give up.
    """

    name: str
    unit: str
    address: str
    port: int
    secrets: str
    served_names: tuple[str, ...]
    boot_seconds: float
    first_answer_seconds: float
    warm_ups: int = 0
    door: tuple[str, int] | None = None
    speculates: bool = False
    thinking: bool = False
    max_tokens: int = 16
    hasty: bool = False


@dataclass(frozen=True)
class SmokeRequests:
    """The services of a host."""

    services: tuple[SmokeRequest, ...]


@dataclass(frozen=True)
class CheckResult:
    """One check, and what it said."""

    name: str
    ok: bool
    seconds: float
    detail: str = ""


@dataclass(frozen=True)
class SmokeAnswer:
    """One service's checks, up to the first that failed; its last lines when one did."""

    checks: tuple[CheckResult, ...] = ()
    journal: tuple[str, ...] = ()
