"""Checks that services of this host answer, with real requests. Runs on the host as root.

Root, because the API key is in a file of mode 0600: it is read here and never leaves the host.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from sparkwright.host.lib import journal, metrics, ranks, systemd
from sparkwright.host.lib.http import Late, NoAnswer, Server, api_key
from sparkwright.host.lib.ranks import SERVING
from sparkwright.host.service import CheckResult, SmokeRequest


@dataclass(frozen=True)
class SmokeRequests:
    """All services to test; they are tested at the same time."""

    services: tuple[SmokeRequest, ...]


@dataclass(frozen=True)
class SmokeAnswer:
    """The checks of one service, up to the first that failed.

    Attributes:
        journal: the service's last lines, if a check failed.
    """

    checks: tuple[CheckResult, ...]
    journal: tuple[str, ...] = ()


QUESTION = "What is 17 + 25? Answer with the number only."
#: Long enough, and easy enough to predict, that a working drafter has tokens accepted.
FORESEEABLE = "Write the numbers from 1 to 30, separated by spaces."
#: Seconds that the proxy has to notice that the service is back.
_PROXY_SECONDS = 20


class Failure(Exception):
    """A check failed; the text says what was observed."""


class Service:
    """A service on this host, and the server that answers for it."""

    def __init__(self, request: SmokeRequest) -> None:
        self.request = request
        key = None if request.follower else api_key(request.secrets)
        self.server = Server(request.address, request.port, key)


def health(service: Service) -> str:
    """Wait for /health, as long as a first boot may take, or until systemd gives up."""
    request = service.request
    deadline = time.monotonic() + request.boot_seconds
    checked = 0.0
    while True:
        try:
            answer = service.server.get("/health")
            if answer.status == 200:
                return "200"
            observed = f"HTTP {answer.status}"
        except NoAnswer as error:
            observed = str(error)
        now = time.monotonic()
        if now > deadline:
            missing = ranks.missing(_home(request))
            raise Failure(f"not healthy after {request.boot_seconds} s: {missing or observed}")
        if now - checked > 1:
            checked = now
            unit = systemd.unit(request.unit)
            state = unit.get("ActiveState", "")
            if state in ("failed", "inactive"):
                raise Failure(f"the unit is {state}: it ended and systemd has given up"
                              f"{_error(request.unit)}")  # fmt: skip
            if unit.get("SubState") == "auto-restart" and request.fail_fast:
                raise Failure(f"it ended while starting{_error(request.unit)}")
        time.sleep(0.3)


def joined(service: Service) -> str:
    """A follower serves together with its head, which answers for it."""
    request = service.request
    deadline = time.monotonic() + request.boot_seconds
    while (state := ranks.state(_home(request))) is None or state.step != SERVING:
        if time.monotonic() > deadline:
            raise Failure(ranks.missing(_home(request)) or "it has not begun to wait for its head")
        time.sleep(0.5)
    unit = systemd.unit(request.unit).get("ActiveState", "unknown")
    if unit != "active":
        raise Failure(f"the unit is {unit}{_error(request.unit)}")
    return f"rank {state.number} serves with its head"


def _home(request: SmokeRequest) -> Path:
    return Path(request.secrets).parent


def _error(unit: str) -> str:
    """``: `` and the journal's last error of a unit; nothing without one."""
    text = journal.error(unit)
    return f": {text}" if text else ""


def models(service: Service) -> str:
    """Every served name is in the model list."""
    answer = service.server.get("/v1/models", timeout=30)
    if answer.status != 200:
        raise Failure(f"/v1/models answers HTTP {answer.status}")
    listed = {model["id"] for model in answer.json()["data"]}
    served = service.request.served_names
    missing = [name for name in served if name not in listed]
    if missing:
        raise Failure(f"not served: {', '.join(missing)}; served: {', '.join(sorted(listed))}")
    return ", ".join(served)


def key_required(service: Service) -> str:
    """Without the key there is no answer."""
    status = service.server.ask("GET", "/v1/models", key=False).status
    if status != 401:
        raise Failure(f"/v1/models answers HTTP {status} without the key: it must be 401")
    return "401 without it"


def generate(service: Service, question: str = QUESTION, tokens: int = 0) -> str:
    """A real generation: a hanging engine still answers /health."""
    request = service.request
    body = {
        "model": request.served_names[0],
        "messages": [{"role": "user", "content": question}],
        "max_tokens": max(tokens, request.max_tokens),
        "temperature": 0,
        "chat_template_kwargs": {"enable_thinking": request.thinking},
    }
    try:
        reply = service.server.ask(
            "POST", "/v1/chat/completions", body, timeout=request.first_answer_seconds
        )
    except Late:
        raise Failure(
            f"no answer within {request.first_answer_seconds} s while /health answers: "
            "the engine hangs"
        ) from None
    if reply.status != 200:
        raise Failure(f"HTTP {reply.status}: {reply.text[:300]}")
    answer = reply.json()
    choice = answer["choices"][0]
    message = choice["message"]
    text = (
        message.get("content") or message.get("reasoning") or message.get("reasoning_content") or ""
    )
    if not answer["usage"]["completion_tokens"] or not text:
        raise Failure(f"an empty answer (finish_reason {choice['finish_reason']})")
    if not text.strip("! \n"):
        raise Failure("the answer is nothing but '!': the weights or their names are wrong")
    return str(text)[:60]


def warm_up(service: Service) -> str:
    """A longer answer: the first ones compile kernels."""
    return generate(service, FORESEEABLE, 64)


def speculation(service: Service) -> str:
    """Tokens are drafted, and some are accepted: else the drafter only costs time."""
    before = _totals(service)
    generate(service, FORESEEABLE, 64)
    after = _totals(service)
    drafted, accepted = (
        after.get(name, 0.0) - before.get(name, 0.0) for name in (metrics.DRAFTED, metrics.ACCEPTED)
    )
    if not drafted:
        raise Failure("no token was drafted: the drafter is not used")
    if not accepted:
        raise Failure(f"none of {drafted:.0f} drafted tokens was accepted: drafter and body differ")
    return f"{accepted:.0f} of {drafted:.0f} drafted tokens accepted"


def _totals(service: Service) -> dict[str, float]:
    answer = service.server.get("/metrics", timeout=30)
    if answer.status != 200:
        raise Failure(f"/metrics answers HTTP {answer.status}")
    return metrics.totals(answer.text, service.request.metric_names)


def proxy(service: Service) -> str:
    """Through the proxy, as clients do: it answers with the key, and refuses without."""
    fault = proxy_fault(service.request)
    if fault:
        raise Failure(fault)
    return "200 with the key, 401 without it"


def proxy_fault(request: SmokeRequest) -> str | None:
    """What is wrong at the proxy of a service; None if nothing is.

    It may take some seconds until the proxy has noticed that the service is back.
    """
    assert request.proxy is not None
    address, port = request.proxy
    server = Server(address, port, api_key(request.secrets), request.certificate)
    deadline = time.monotonic() + _PROXY_SECONDS
    while True:
        try:
            found = [server.ask("GET", "/v1/models", key=key).status for key in (True, False)]
            if found == [200, 401]:
                return None
            fault = (
                f"HTTP {found[0]} with the key, {found[1]} without it, and it must be 200 and 401"
            )
        except NoAnswer as error:
            fault = f"port {port} does not answer: {error}"
        if time.monotonic() > deadline:
            return fault
        time.sleep(0.5)


def without_proxy(name: str, gate: SmokeRequest) -> tuple[list[str], tuple[str, ...]]:
    """What fails of a service that is asked at its own port, as lines, and its journal then."""
    found = run(replace(gate, proxy=None, warm_ups=0))
    bad = [f"{name}: {one.name}: {one.detail}" for one in found.checks if not one.ok]
    return bad, found.journal


def run(request: SmokeRequest) -> SmokeAnswer:
    """All checks of one service; the first failure ends them, since the rest would fail with it."""
    plan = [("health", health), ("models", models), ("key", key_required), ("generation", generate)]
    plan += [(f"warm-up {number + 1}", warm_up) for number in range(request.warm_ups)]
    if request.follower:
        plan = [("rank", joined)]
    elif request.speculates:
        plan.append(("speculation", speculation))
    if request.proxy:
        plan.append(("proxy", proxy))
    checks: list[CheckResult] = []
    for name, check in plan:
        started = time.monotonic()
        try:
            detail, ok = check(Service(request)), True
        except Failure as failure:
            detail, ok = str(failure), False
        except NoAnswer as error:
            detail, ok = f"{error.kind}: {error}", False
        except (OSError, ValueError, KeyError) as error:
            detail, ok = f"{type(error).__name__}: {error}", False
        checks.append(CheckResult(name, ok, time.monotonic() - started, detail))
        if not ok:
            return SmokeAnswer(tuple(checks), tuple(journal.last(request.unit)))
    return SmokeAnswer(tuple(checks))


def main(request: SmokeRequests) -> dict[str, SmokeAnswer]:
    """Test the services, all at the same time. Answers by name."""
    services = request.services
    if len(services) < 2:
        return {service.name: run(service) for service in services}
    from concurrent.futures import ThreadPoolExecutor  # not needed, so not loaded, for one

    with ThreadPoolExecutor(max_workers=len(services)) as pool:
        names = (service.name for service in services)
        return dict(zip(names, pool.map(run, services), strict=True))
