"""Checks everything that a service must be able to do. Runs on the host as root.

Root, because the API key is in a file of mode 0600: it is read here and never leaves the host.
The controller decides what a service must be able to do (sparkwright/checks/smoke/deep.py): it
comes with the request; what a failure means is in sparkwright/checks/smoke/checks.yaml.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sparkwright.host.lib import files, journal
from sparkwright.host.lib.http import NoAnswer
from sparkwright.host.smoke import check, lengths, load, reasoning, routes, structured, vision
from sparkwright.host.smoke.client import Client, DeepRequest, Fault, Skip


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


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        ask: returns in a line what was observed; raises Fault, or Skip.
        seconds: beyond the deadline of one answer, by the request.
    """

    name: str
    ask: Callable[[Client], str]
    seconds: Callable[[DeepRequest], float] = lambda _: 0.0


#: In this order: what everything else needs comes first, what may kill the engine last. The times
#: allow for reading prompts at 200 tokens per second and for writing 10 tokens per second over all
#: sequences: slower than any system of the catalog.
CHECKS = (
    Check("aliases", routes.names, lambda request: 10.0 * len(request.service.served_names)),
    Check("key", routes.key),
    Check("chat", routes.chat),
    Check("completion", routes.completion),
    Check("stream", routes.stream),
    Check("thinking-off", reasoning.switched_off),
    Check("thinking-on", reasoning.switched_on, lambda request: request.thinking_tokens / 2),
    Check("tools", structured.tools, lambda _: 50.0),
    Check("json-schema", structured.json_schema, lambda _: 25.0),
    Check("image", vision.image),
    Check("long-2k", lengths.after_2k, lambda _: 10.0),
    Check("long-16k", lengths.after_16k, lambda _: 82.0),
    Check("context-limit", lengths.limit),
    Check("prefix-cache", load.prefix_cache, lambda _: 120.0),
    Check("speculation", load.speculation),
    Check("concurrency", load.concurrency, lambda request: 12.8 * (request.max_num_seqs or 0)),
)

#: If one of these is late, the engine hangs: longer checks are not waited for.
_SMALLEST = ("aliases", "chat")
_HANGING_SECONDS = 10.0


def run(request: DeepRequest) -> DeepAnswer:
    """All checks of one service. A failure does not stop the others, except for health."""
    service = request.service
    found = [_result("health", partial(_health, request))]
    if found[0].verdict == "passed":
        for one in CHECKS:
            why = request.skip.get(one.name)
            if why:
                found.append(DeepCheckResult(one.name, "skipped", 0.0, why))
                continue
            seconds = service.first_answer_seconds + one.seconds(request)
            if any(result.name in _SMALLEST and result.cause == "late" for result in found):
                seconds = min(seconds, _HANGING_SECONDS)
            found.append(_result(one.name, partial(_asked, one, request, seconds)))
    failed = any(result.verdict == "failed" for result in found)
    return DeepAnswer(
        release=files.target(Path(service.secrets).parent / "current"),
        checks=tuple(found),
        journal=tuple(journal.last(service.unit)) if failed else (),
    )


def _asked(one: Check, request: DeepRequest, seconds: float) -> str:
    return one.ask(Client(request, seconds))


def _health(request: DeepRequest) -> str:
    secrets = request.service.secrets
    if not Path(secrets).exists():
        raise Fault("absent", f"{secrets} does not exist: the service is not deployed here")
    try:
        return check.health(check.Service(request.service))
    except check.Failure as failure:
        raise Fault("down", str(failure)) from None


def _result(name: str, ask: Callable[[], str]) -> DeepCheckResult:
    """A check's result, whatever it raises."""
    begun = time.monotonic()
    verdict, cause = "failed", None
    try:
        detail = ask()
        verdict = "passed"
    except Skip as skip:
        verdict, detail = "skipped", str(skip)
    except Fault as fault:
        detail, cause = str(fault), fault.cause
    except NoAnswer as error:
        detail, cause = f"{error.kind}: {error}", "cut"
    except OSError as error:
        detail, cause = f"{type(error).__name__}: {error}", "cut"
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        detail, cause = f"an answer that no engine would give: {error!r}", "shape"
    return DeepCheckResult(name, verdict, round(time.monotonic() - begun, 3), detail, cause)


def main(request: DeepRequests) -> dict[str, DeepAnswer]:
    """Test the services by name, one after the other: they share one GPU."""
    return {one.service.name: run(one) for one in request.services}
