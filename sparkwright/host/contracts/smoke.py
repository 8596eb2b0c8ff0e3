"""Requests and results of the smoke tests: the short one, also a switch's gate, and the deep one.

Times are in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SmokeRequest:
    """A service, and what it must answer.

    Attributes:
        address, port: where it is reached from its own host.
        secrets: file with the API key.
        boot_seconds: until /health must answer.
        first_answer_seconds: deadline of one answer.
        warm_ups: answers requested beyond the first, since the first ones compile kernels.
        proxy: address and port of the proxy in front of it; None where there is none.
        certificate: file that the proxy serves https with; where it is not there, it serves http.
        speculates: whether tokens must be drafted and accepted.
        thinking: whether the model thinks before its answers here.
        max_tokens: of an answer.
        fail_fast: whether the first crash while starting is a failure; else systemd's restarts are
            waited for.
        follower: whether the head of its cluster, on another host, answers for it.
    """

    name: str
    unit: str
    address: str
    port: int
    secrets: str
    served_names: tuple[str, ...]
    boot_seconds: int
    first_answer_seconds: int
    warm_ups: int = 0
    proxy: tuple[str, int] | None = None
    speculates: bool = False
    thinking: bool = False
    max_tokens: int = 32
    fail_fast: bool = False
    certificate: str | None = None
    follower: bool = False


@dataclass(frozen=True)
class SmokeRequests:
    """All services to test; they are tested at the same time."""

    services: tuple[SmokeRequest, ...]


@dataclass(frozen=True)
class CheckResult:
    """One check of the short test.

    Attributes:
        detail: what was observed.
    """

    name: str
    ok: bool
    seconds: float
    detail: str = ""


@dataclass(frozen=True)
class SmokeAnswer:
    """The checks of one service, up to the first that failed.

    Attributes:
        journal: the service's last lines, if a check failed.
    """

    checks: tuple[CheckResult, ...]
    journal: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeepRequest:
    """What the deep test asks of a service beyond the short one.

    Attributes:
        tool_parser, reasoning_parser: as the recipe names them.
        thinking_tokens: budget of an answer that may think first.
        max_num_seqs: requests that the engine serves at once; None where the plan leaves it open.
        context: tokens; None where the plan leaves it to the server, which then reports it.
        prefix_caching: None where the plan leaves it to vLLM's default.
        skip: check -> why this service gives no reason for it.
    """

    service: SmokeRequest
    tool_parser: str | None
    reasoning_parser: str | None
    thinking_tokens: int
    max_num_seqs: int | None
    context: int | None
    prefix_caching: bool | None
    skip: dict[str, str]


@dataclass(frozen=True)
class DeepRequests:
    """All services to test, one after the other."""

    services: tuple[DeepRequest, ...]


@dataclass(frozen=True)
class DeepCheckResult:
    """One check of the deep test.

    Attributes:
        verdict: passed, failed or skipped.
        detail: what was observed, or why it was skipped.
        cause: a key of sparkwright/checks/smoke/checks.yaml, if it failed for a known cause.
    """

    name: str
    verdict: str
    seconds: float
    detail: str
    cause: str | None = None


@dataclass(frozen=True)
class DeepAnswer:
    """The checks of one service.

    Attributes:
        release: the one that runs; None where none does.
        journal: the service's last lines, if a check failed.
    """

    release: str | None
    checks: tuple[DeepCheckResult, ...]
    journal: tuple[str, ...] = ()
