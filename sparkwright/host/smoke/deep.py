"""Checks everything that a service must be able to do. Runs on the host as root.

Root, because the API key is in a file of mode 0600: it is read here and never leaves the host.
The controller decides what a service must be able to do (sparkwright/checks/smoke/deep.py): it
comes with the request; what a failure means is in sparkwright/checks/smoke/checks.yaml.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from sparkwright.host.lib import files, journal
from sparkwright.host.lib.faults import fail_if
from sparkwright.host.lib.records import dataclass
from sparkwright.host.smoke import load, picture, routes, structured
from sparkwright.host.smoke.check import DeepCheckResult, health, observed
from sparkwright.host.smoke.client import DeepClient, DeepRequest, Skip


@dataclass(frozen=True)
class DeepAnswer:
    """The checks of one service.

    Attributes:
        release: the running release; None if none runs.
        journal: the service's last lines, if a check failed.
    """

    release: str | None
    checks: tuple[DeepCheckResult, ...]
    journal: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """Check of the deep test.

    Attributes:
        ask: returns in a line what was observed; raises Fault, or Skip.
        seconds: beyond the deadline of one answer, by the request.
    """

    name: str
    ask: Callable[[DeepClient], str]
    seconds: Callable[[DeepRequest], float] = lambda _: 0.0


#: In this order: what everything else needs comes first, what may kill the engine last. The times
#: allow for reading prompts at 200 tokens per second and for writing 10 tokens per second over all
#: sequences: slower than any system of the catalog.
CHECKS = (
    Check("aliases", routes.names, lambda request: 10.0 * len(request.served_names)),
    Check("key", routes.key),
    Check("chat", routes.chat),
    Check("completion", routes.completion),
    Check("stream", routes.stream),
    Check("thinking-off", routes.switched_off),
    Check("thinking-on", routes.switched_on, lambda request: request.thinking_tokens / 2),
    Check("tools", structured.tools, lambda _: 50.0),
    Check("json-schema", structured.json_schema, lambda _: 25.0),
    Check("image", picture.image),
    # Where the drafters' sliding windows end, and where a drafter of before 2026-04-19 crashes.
    Check("long-2k", partial(load.needle, tokens=2048), lambda _: 10.0),
    Check("long-16k", partial(load.needle, tokens=16384), lambda _: 82.0),
    Check("context-limit", load.limit),
    Check("prefix-cache", load.prefix_cache, lambda _: 120.0),
    Check("speculation", load.speculation),
    Check("concurrency", load.concurrency, lambda request: 12.8 * (request.max_num_seqs or 0)),
)

#: If one of these is late, the engine hangs: longer checks are not waited for.
_SMALLEST = ("aliases", "chat")
_HANGING_SECONDS = 10.0


def run(request: DeepRequest) -> DeepAnswer:
    """All checks of one service. A failure does not stop the others, except for health."""
    results = [observed("health", partial(_health, request))]
    if results[0].verdict == "passed":
        for check in CHECKS:
            seconds = request.first_answer_seconds + check.seconds(request)
            if any(result.name in _SMALLEST and result.cause == "late" for result in results):
                seconds = min(seconds, _HANGING_SECONDS)
            results.append(observed(check.name, partial(_asked, check, request, seconds)))
    failed = any(result.verdict == "failed" for result in results)
    return DeepAnswer(
        release=files.target(Path(request.secrets).parent / "current"),
        checks=tuple(results),
        journal=tuple(journal.last(request.unit)) if failed else (),
    )


def _asked(check: Check, request: DeepRequest, seconds: float) -> str:
    if check.name in request.skip:
        raise Skip(request.skip[check.name])
    return check.ask(DeepClient(request, seconds))


def _health(request: DeepRequest) -> str:
    absent = f"{request.secrets} does not exist: the service is not deployed here"
    fail_if(not Path(request.secrets).exists(), "absent", absent)
    return health(DeepClient(request, 0))


def main(request: tuple[DeepRequest, ...]) -> dict[str, DeepAnswer]:
    """Test the services by name, one after the other: they share one GPU."""
    return {service.name: run(service) for service in request}
