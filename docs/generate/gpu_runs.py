"""Table of runs on a real GPU in docs/lab.md, from the result files of lab/gpu."""

import itertools
import json
import statistics
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from textwrap import shorten
from typing import Any

from docs.generate.markdown import table

RESULTS = Path(__file__).parents[2] / "lab/gpu/results"

#: Releases that a host must not accept, with their descriptions.
_BAD_RELEASES = {
    "share": "a release with 0.995 of the memory",
    "noise": "a release with weights of noise",
    "dies": "a release whose EngineCore is killed 5 s after each start",
}
#: Steps that deploy a model, and its share of the memory.
_SHARES = {"memory": 0.85, "fp8": 0.5, "moe": 0.85, "drafter": 0.85}
_TOTAL_GIB = 139.8

#: Steps that break a host, and descriptions of the fault.
_FAULTS = {
    "container": "the container is killed 12 s after it first served, and loses its caches",
    "docker": "Docker is restarted",
    "power": "the host's power is cut under load",
    "devices": "the host's device nodes go, and come back after failed starts",
    "disk": "4 MB are left for compiled code: three starts fail; after space is freed",
}


def part() -> str:
    """Text with the machine of all runs, their days, and a table of results."""
    runs = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.iterdir()}
    rows = [*_rows(runs)]
    (machine,) = {_where(runs[step]) for step, _ in rows}  # a second GPU needs a column
    days = ", ".join(sorted({runs[step]["date"] for step, _ in rows}))
    return f"{machine}, {days}:\n\n{table(('step', 'result'), rows)}"


def _where(run: dict[str, Any]) -> str:
    return f"{run['gpu']}, driver {run['driver']}, {run['engine']}"


def _rows(runs: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    first, second = runs["deploy"]["first"], runs["deploy"]["second"]
    text = (
        f"bare host: answers after {first['seconds']} s, {first['executions']} executions"
        f"; the second run: {second['changes']} changes, {second['executions']} "
        f"remote executions, {second['seconds']} s"
    )
    yield "deploy", text
    captures = runs["captures"]
    codes = [
        f"{load}: " + ", ".join(f"{name} {item['code']}" for name, item in captures[load].items())
        for load in ("idle", "busy")
    ]
    text = f"exit codes with the GPU {'; '.join(codes)}; `smoke`: {captures['smoke']['code']}"
    yield "captures", text
    shares = [_memory(step, runs[step], share) for step, share in _SHARES.items()]
    text = f"weights, KV cache, and nvidia-smi's figure against the plan's sum: {'; '.join(shares)}"
    yield "memory", text
    boots = runs["boots"]
    text = (
        f"seconds to /health: first start {boots['first_start']['total']}, second "
        f"{boots['second_start']['total']}; `systemctl restart` "
        f"{boots['to_health']['systemctl restart']}, `docker restart` "
        f"{boots['to_health']['docker restart']}"
    )
    yield "boots", text
    text = (
        f"EngineCore is killed: the engine ends with code 0, and serves again after "
        f"{runs['killed']['seconds to health']} s"
    )
    yield "killed", text
    for step, fault in _FAULTS.items():
        run = runs[step]
        row = f"{fault}: the service answers after {run['seconds to health']} s; `doctor`"
        yield step, f"{row} {run['doctor']['code']}{_deployed(run)}"
    yield "naps", _naps(runs["naps"])
    bench = runs["bench"]
    yield (
        "bench",
        "; ".join(
            f"{name} {bench['client'][name]} ms, {own} by the engine"
            for name, own in bench["histograms"].items()
        ),
    )
    yield "sleep", _sleep(runs["sleep"])
    yield from _releases(runs)
    for way in ("proxy", "TLS"):
        yield "proxy", _speeds(_beside(runs["proxy"]["runs"], way), "engine", way)
    yield from _several(runs["replicas"], runs["ranks"])


def _memory(step: str, run: dict[str, Any], share: float) -> str:
    took, ratio = run["memory"], run["held_mib"] / share / _TOTAL_GIB / 1024
    return (
        f"{step} ({share} of {_TOTAL_GIB} GiB): {took['weights_gib']} GiB, "
        f"{took['cache_gib']} GiB, {ratio:.3f}x"
    )


def _naps(run: dict[str, Any]) -> str:
    naps = [run[f"nap {turn}"] for turn in range(3)]
    # Without its own figure, the first request began 4 s before the measured requests.
    waits = [nap["answer"].get("first_request_seconds") or
             nap["answer"]["seconds"] + 4 - nap["again"]["seconds"] for nap in naps]  # fmt: skip
    return (
        f"an idle service sleeps: {int(run['slept_mib']):,} of {int(run['awake_mib']):,} MiB stay "
        f"in use; the next answers came after {', '.join(f'{wait:.1f}' for wait in waits)} s; "
        f"the next deploy: {run['second']['changes']} changes"
    )


def _deployed(run: dict[str, Any]) -> str:
    deploy = run.get("deploy")
    return f", the next deploy: {deploy['changes']} changes" if deploy else ""


def _sleep(run: dict[str, Any]) -> str:
    shown = [f"awake: {run['awake']['gpu_mib']:,} MiB of the GPU"]
    for nap in {nap["level"]: nap for nap in run["naps"]}.values():  # the last round of each level
        held, seconds = nap["asleep"]["gpu_mib"], nap["seconds to an answer"]
        shown.append(f"level {nap['level']}: {held:,} MiB, an answer after {seconds:.1f} s")
    return "; ".join(shown)


def _releases(runs: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    same = runs["reload"]["before"] == runs["reload"]["after"]
    yield (
        "reload",
        f"the container {'keeps' if same else 'loses'} the GPU when systemd reloads units",
    )
    for step, release in _BAD_RELEASES.items():
        run = runs[step]["run"]
        (outcome,), (reason,) = run["outcomes"], run["refused"].values()
        shown = shorten(reason.removeprefix("qwen3: "), 100, placeholder=" …")
        yield step, f"{release} was {outcome} after {run['seconds']} s: `{shown}`"


def _several(replicas: dict[str, Any], ranks: dict[str, Any]) -> Iterator[tuple[str, str]]:
    text = (
        f"a roll-out over two hosts behind an address, with 16 clients: "
        f"{replicas['served']:,} answers, {replicas['failed']} failed; the next run: "
        f"{replicas['again']['changes']} changes"
    )
    yield "replicas", text
    yield "replicas", _speeds(replicas["streams"], "proxies", "address")
    rates = "; ".join(
        f"{streams} at a time: {rate['ranks']:,.0f} tokens/s"
        for streams, rate, _ in _medians(ranks["streams"])
    )
    health = "seconds to health"
    text = (
        f"a model over two hosts by NCCL: deployed in "
        f"{ranks['deploy']['seconds']} s; {rates}; the model answers {ranks['follower'][health]} s "
        f"after the follower's death (without its caches), and {ranks['head'][health]} s after the "
        "head's death"
    )
    yield "ranks", text


def _medians(
    measured: list[dict[str, Any]],
) -> Iterator[tuple[int, dict[str, float], dict[str, float]]]:
    """Number of streams, with tokens/s and milliseconds to the first token by measured route."""
    ways: dict[int, dict[str, list[dict[str, Any]]]] = {}
    for run in measured:
        ways.setdefault(run["streams"], {}).setdefault(run["way"], []).append(run)
    for streams, way in sorted(ways.items()):
        rate, delay = (
            {name: statistics.median(map(figure, items)) for name, items in way.items()}
            for figure in (_rate, itemgetter("first_token_ms"))
        )
        yield streams, rate, delay


def _rate(run: dict[str, Any]) -> float:
    """Requested tokens per second; under load, an event carries several tokens."""
    return float(run["requests"] * run["tokens"] / run["seconds"])


def _beside(measured: list[dict[str, Any]], way: str) -> list[dict[str, Any]]:
    """Runs of a route, each with the preceding run at the engine's socket."""
    pairs = itertools.pairwise(measured)
    return [run for pair in pairs if pair[1]["way"] == way for run in pair]


def _speeds(measured: list[dict[str, Any]], base: str, way: str) -> str:
    shown = [
        f"{streams}: {rate[base]:,.0f}, {rate[way] / rate[base]:.3f}x, "
        f"{delay[way] - delay[base]:+.1f} ms"
        for streams, rate, delay in _medians(measured)
    ]
    return f"streams: tokens/s at the {base}, through {way}, first token: {'; '.join(shown)}"
