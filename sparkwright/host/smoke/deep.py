"""Check all abilities that a service must have. The program runs on the host as root.

Root is needed because the API key is in a file of mode 0600; the key never leaves the host. The
controller decides which abilities a service must have (sparkwright/checks/smoke/deep.py) and sends
them in the request; sparkwright/checks/smoke/checks.yaml has the meaning of each failure.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from sparkwright.host.lib import faults, files, journal, records
from sparkwright.host.smoke import client, load, picture, routes, structured
from sparkwright.host.smoke.check import DeepCheckResult, answered, health, observed


@records.dataclass(frozen=True)
class DeepAnswer:
    """The checks of one service.

    Attributes:
        release: the running release; None if no release runs.
        journal: the service's last lines, if a check failed.
    """

    release: str | None
    checks: tuple[DeepCheckResult, ...]
    journal: tuple[str, ...] = ()


@records.dataclass(frozen=True)
class Probe:
    """A probe of the deep test: one ability of the engine.

    Attributes:
        ask: function that returns the observation in a line, or raises Fault or Skip.
        seconds: function of the request; returns seconds to add to the deadline of one answer.
    """

    name: str
    ask: Callable[[client.DeepClient], str]
    seconds: Callable[[client.DeepRequest], float] = lambda _: 0.0


#: Checks in their order: basic abilities come first, and checks that may kill the engine last. The
#: times allow for reading prompts at 200 tokens per second and for writing 10 tokens per second
#: over all sequences: slower than any system of the catalog.
PROBES = (
    Probe("aliases", routes.names, lambda request: 10.0 * len(request.served_names)),
    Probe("key", routes.key),
    Probe("chat", routes.chat),
    Probe("completion", partial(answered, kind="completion")),
    Probe("stream", routes.stream),
    Probe("thinking-off", routes.switched_off),
    Probe("thinking-on", routes.switched_on, lambda request: request.thinking_tokens / 2),
    Probe("tools", structured.tools, lambda _: 50.0),
    Probe("json-schema", structured.json_schema, lambda _: 25.0),
    Probe("image", picture.image),
    # The end of the drafters' sliding windows, where drafters from before 2026-04-19 crash.
    Probe("long-2k", partial(load.needle, tokens=2048), lambda _: 10.0),
    Probe("long-16k", partial(load.needle, tokens=16384), lambda _: 82.0),
    Probe("context-limit", load.limit),
    Probe("prefix-cache", load.prefix_cache, lambda _: 120.0),
    Probe("speculation", load.speculation),
    Probe("concurrency", load.concurrency, lambda request: 12.8 * (request.max_num_seqs or 0)),
)

#: If one of these checks is late, the engine hangs, and longer checks are skipped.
_SMALLEST = ("aliases", "chat")
_HANGING_SECONDS = 10.0


def run(request: client.DeepRequest) -> DeepAnswer:
    """Run all checks of one service. A failed check does not stop the other checks, except for
    health.
    """
    results = [observed("health", partial(_health, request))]
    if results[0].verdict == "passed":
        for probe in PROBES:
            seconds = request.first_answer_seconds + probe.seconds(request)
            if any(result.name in _SMALLEST and result.cause == "late" for result in results):
                seconds = min(seconds, _HANGING_SECONDS)
            results.append(observed(probe.name, partial(_asked, probe, request, seconds)))
    failed = any(result.verdict == "failed" for result in results)
    return DeepAnswer(
        release=files.target(Path(request.secrets).parent / "current"),
        checks=tuple(results),
        journal=tuple(journal.last(request.unit)) if failed else (),
    )


def _asked(probe: Probe, request: client.DeepRequest, seconds: float) -> str:
    if probe.name in request.skip:
        raise client.Skip(request.skip[probe.name])
    return probe.ask(client.DeepClient(request, seconds))


def _health(request: client.DeepRequest) -> str:
    absent = f"{request.secrets} does not exist: the service is not deployed here"
    faults.fail_if(not Path(request.secrets).exists(), "absent", absent)
    return health(client.DeepClient(request, 0))


def main(request: tuple[client.DeepRequest, ...]) -> dict[str, DeepAnswer]:
    """Test the services one after the other, since they share a GPU. Returns the results by
    name.
    """
    return {service.name: run(service) for service in request}
