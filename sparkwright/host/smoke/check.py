"""Check with real requests that services of this host answer. The program runs on the host as root.

Root is needed because the API key is in a file of mode 0600; the key never leaves the host.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from sparkwright.host.lib import http, journal, metrics, model_list, ranks, systemd, waiting
from sparkwright.host.lib.faults import SHAPE, Fault, fail_if, fail_if_noise, fail_if_only_marks
from sparkwright.host.lib.kinds import KINDS, body, judged
from sparkwright.host.lib.records import dataclass, replace
from sparkwright.host.service import CheckResult, SmokeRequest
from sparkwright.host.smoke.client import Client, Skip, succeeded


@dataclass(frozen=True)
class SmokeAnswer:
    """The checks of one service, up to the first failed check.

    Attributes:
        journal: the last lines of the service's log, if a check failed.
    """

    checks: tuple[CheckResult, ...]
    journal: tuple[str, ...] = ()

    def failures(self, service: str) -> list[str]:
        """Failed checks, as lines."""
        return [f"{service}: {check.name}: {check.detail}" for check in self.checks if not check.ok]


@dataclass(frozen=True)
class DeepCheckResult:
    """Result of a check of the deep test.

    Attributes:
        verdict: passed, failed or skipped.
        detail: the observation, or the reason for skipping the check.
        cause: a key of sparkwright/checks/smoke/checks.yaml, if the check failed for a known cause.
    """

    name: str
    verdict: str
    seconds: float
    detail: str
    cause: str | None = None


QUESTION = "What is 17 + 25? Answer with the number only."
#: A question whose answer is long and predictable, so that the engine accepts tokens of a working
#: drafter.
FORESEEABLE = "Write the numbers from 1 to 30, separated by spaces."
#: Seconds for the proxy to notice that the service is back, and for a list of models.
_PROXY_SECONDS, _LISTED = 20, 30


def health(
    client: Client,
    look: Callable[[], object] = lambda: None,
    lasting: Callable[[], str] = lambda: "",
) -> str:
    """Wait for /health until the longest first boot has passed or systemd gives up.

    Args:
        look: function called every second while waiting, and once after the answer.
        lasting: function called once for each crash; returns a cause that no restart fixes, or an
            empty text.
    """
    request = client.request
    deadline = time.monotonic() + request.boot_seconds
    checked, crash = 0.0, ""
    while True:
        try:
            answer = client.server.get("/health")
            observed = f"HTTP {answer.status}"
            if answer.status == 200:
                if _open(request.address):
                    look()
                    return "200"
                # If the socket refused HAProxy, HAProxy would not use the server for two more
                # checks.
                observed = "the socket is closed"
        except (http.NoAnswer, FileNotFoundError) as error:
            observed = str(error)
        now = time.monotonic()
        if now > deadline:
            observed = ranks.missing(_home(request)) or observed
            raise Fault("down", f"not healthy after {request.boot_seconds} s: {observed}")
        if now - checked > 1:
            checked = now
            look()
            unit = systemd.unit(request.unit)
            state = unit.get("ActiveState", "")
            if state in ("failed", "inactive"):
                ended = f"the unit is {state}: it ended, and systemd does not restart it"
                raise Fault("down", f"{ended}{_error(request.unit)}")
            # Search the journal for the cause only once, however long systemd waits.
            if unit.get("SubState") == "auto-restart" and crash != (
                crash := unit.get("NRestarts", "unknown")
            ):
                cause = lasting()
                if cause or request.fail_fast:
                    raise Fault(
                        "down", f"the unit ended while starting{_error(request.unit)}{cause}"
                    )
        time.sleep(0.3)


def joined(client: Client) -> str:
    """Wait until a follower serves together with its head, which answers for it."""
    request, home = client.request, _home(client.request)

    def state() -> http.Health:
        unknown = "the follower does not wait for its head yet"
        return ranks.health(home) or http.Health(None, message=unknown)

    if waiting.remaining(lambda: not state().code, request.boot_seconds, 0.5):
        raise Fault("down", state().message)
    unit = systemd.unit(request.unit).get("ActiveState", "unknown")
    if unit != "active":
        raise Fault("down", f"the unit is {unit}{_error(request.unit)}")
    return state().message


def _open(address: str) -> bool:
    """Return whether users other than root may connect to an address."""
    return not address.startswith("/") or bool(Path(address).lstat().st_mode & 0o002)


def _home(request: SmokeRequest) -> Path:
    return Path(request.secrets).parent


def _error(unit: str) -> str:
    """Return ``: `` and the last error in a unit's journal; empty without an error."""
    text = journal.error(unit)
    return f": {text}" if text else ""


def models(client: Client) -> str:
    """Check that every served name is in the model list."""
    listed = set(model_list.names(client.json("GET", "/v1/models")))
    served = client.request.served_names
    missing = [name for name in served if name not in listed]
    shown = f"not served: {', '.join(missing)}; served: {', '.join(sorted(listed))}"
    fail_if(missing, "unlisted", shown)
    return ", ".join(served)


def key_required(client: Client) -> str:
    """Check that a request without the key is refused."""
    route = client.request.key_probe
    status = client.call("GET", route, key=False).status
    fail_if(status != 401, "open", f"{route} answers HTTP {status} without the key: it must be 401")
    return "401 without the key"


def generate(client: Client, question: str = QUESTION, tokens: int = 0) -> str:
    """Request a real generation: a hanging engine still answers /health."""
    answer = client.chat(client.body(question, max(tokens, client.request.max_tokens)))
    text = answer.text or answer.reasoning or ""
    empty = not answer.tokens or not text
    fail_if(empty, "empty", f"an empty answer (finish_reason {answer.finish})")
    fail_if_only_marks(text)
    fail_if_noise(text)
    return text[:60]


def adapters(client: Client) -> str:
    """Request a real generation from each adapter, under its own name."""
    for name in client.request.adapters:
        generate(Client(replace(client.request, served_names=(name,)), client.left()))
    return ", ".join(client.request.adapters)


def answered(client: Client, kind: str, name: str = "") -> str:
    """Send a kind's request under one of the served names, and judge the answer.

    Raises:
        Fault: the model does not work.
    """
    routes = client.request.routes
    asked = body(KINDS[kind].request, name or client.request.served_names[0])
    answer = client.call("POST", routes[kind], asked)
    if kind == "embedding" and answer.status == 404 and "rerank" in routes:
        return "the route does not exist: perhaps the model only returns scores"
    return judged(kind, succeeded(routes[kind], answer), Path(client.request.model_files))


def answering(request: SmokeRequest) -> list[tuple[str, Callable[[Client], str]]]:
    """Return the checks of a service's own routes and their answers, by name."""
    if "chat" in request.routes or not request.routes:
        return [("generation", generate)]
    return [(kind, partial(answered, kind=kind)) for kind in KINDS if kind in request.routes]


def warm_up(client: Client) -> str:
    """Request a longer answer, since the first answers compile kernels."""
    return generate(client, FORESEEABLE, 64)


def speculation(client: Client, ask: Callable[[Client], object] = warm_up) -> str:
    """Check that tokens are drafted and some are accepted: otherwise the drafter only costs
    time.
    """
    before = client.metrics()
    ask(client)
    after = client.metrics()
    drafts, drafted, accepted = (
        after.since(before, name) for name in (metrics.DRAFTS, metrics.DRAFTED, metrics.ACCEPTED)
    )
    if drafts and metrics.ACCEPTED not in after.values:
        return f"{drafts:.0f} drafts were verified; the engine counts no accepted tokens"
    fail_if(not drafted, "undrafted", "no token was drafted: the drafter is not used")
    none = f"none of {drafted:.0f} drafted tokens was accepted: drafter and body differ"
    fail_if(not accepted, "unaccepted", none)
    share = f"{accepted:.0f} of {drafted:.0f} drafted tokens accepted ({accepted / drafted:.0%})"
    return f"{share}, {1 + accepted / drafts:.1f} tokens a step" if drafts else share


def proxy(client: Client) -> str:
    """Check that the proxy answers a client with the key, and refuses a client without it."""
    if fault := proxy_fault(client.request):
        raise Fault("down", fault)
    return "200 with the key, 401 without it"


def proxy_fault(request: SmokeRequest) -> str | None:
    """Return the fault of a service's proxy; None without a fault.

    The proxy may need some seconds to detect that the service is back.
    """
    assert request.proxy is not None
    address, port = request.proxy
    server = http.Server(address, port, http.api_key(request.secrets), request.certificate)

    def fault() -> str | None:
        try:
            with_key, without_key = (
                server.ask("GET", "/v1/models", key=key).status for key in (True, False)
            )
        except http.NoAnswer as error:
            return f"port {port} does not answer: {error}"
        if (with_key, without_key) == (200, 401):
            return None
        return f"HTTP {with_key} with the key and {without_key} without it: must be 200 and 401"

    return waiting.remaining(fault, _PROXY_SECONDS, 0.5)


def proxy_faults(gates: Mapping[str, SmokeRequest]) -> list[str]:
    """Return the faults of services' proxies, as lines."""
    return [
        f"{name}: proxy: {fault}"
        for name, gate in gates.items()
        if gate.proxy and (fault := proxy_fault(gate))
    ]


def without_proxy(
    name: str, gate: SmokeRequest, look: Callable[[], object] = lambda: None
) -> tuple[list[str], tuple[str, ...]]:
    """Test a service at its own port. Returns the service's failures as lines, and its last journal
    lines.
    """
    answer = run(replace(gate, proxy=None, warm_ups=0), look)
    return answer.failures(name), answer.journal


def observed(name: str, check: Callable[[], str]) -> DeepCheckResult:
    """Run a check, and return its result even if it raises."""
    begun = time.monotonic()
    verdict, cause = "failed", None
    try:
        detail = check()
        verdict = "passed"
    except Skip as skip:
        verdict, detail = "skipped", str(skip)
    except Fault as fault:
        detail, cause = str(fault), fault.cause
    except http.NoAnswer as error:
        detail, cause = f"{error.kind}: {error}", "cut"
    except OSError as error:
        detail, cause = f"{type(error).__name__}: {error}", "cut"
    except SHAPE as error:
        detail, cause = f"the answer has an unexpected form: {error!r}", "shape"
    return DeepCheckResult(name, verdict, round(time.monotonic() - begun, 3), detail, cause)


def run(
    request: SmokeRequest,
    look: Callable[[], object] = lambda: None,
    lasting: Callable[[], str] = lambda: "",
) -> SmokeAnswer:
    """Run all checks of one service. The first failure ends the checks, since the remaining checks
    would also fail.

    Args:
        look, lasting: functions called during the boot; see ``health``.
    """

    def started(client: Client) -> str:
        return health(client, look, lasting)

    plan = [("health", started), ("models", models), ("key", key_required), *answering(request)]
    plan += [(f"warm-up {number + 1}", warm_up) for number in range(request.warm_ups)]
    plan += [("adapters", adapters)] if request.adapters else []
    if request.follower:
        plan = [("rank", joined)]
    elif request.speculates:
        plan.append(("speculation", speculation))
    if request.proxy:
        plan.append(("proxy", proxy))
    checks: list[CheckResult] = []
    for name, check in plan:
        seconds = _LISTED if check in (models, key_required) else request.first_answer_seconds

        def ask(check: Callable[[Client], str] = check, seconds: float = seconds) -> str:
            return check(Client(request, seconds))

        result = observed(name, ask)
        checks.append(CheckResult(name, result.verdict == "passed", result.seconds, result.detail))
        if result.verdict != "passed":
            return SmokeAnswer(tuple(checks), tuple(journal.last(request.unit)))
    return SmokeAnswer(tuple(checks))


def main(request: tuple[SmokeRequest, ...]) -> dict[str, SmokeAnswer]:
    """Test the services, all at the same time. Returns the results by name."""
    if len(request) < 2:
        return {service.name: run(service) for service in request}
    # A single service needs no threads: their import is skipped.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=len(request)) as pool:
        names = (service.name for service in request)
        return dict(zip(names, pool.map(run, request), strict=True))
