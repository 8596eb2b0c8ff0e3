"""Table of runs on a real GPU in docs/lab.md, from the result files of lab/gpu."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.generate.markdown import table

RESULTS = Path(__file__).parents[2] / "lab/gpu/results"

#: Steps that break a host, and descriptions of the fault.
_FAULTS = {
    "container": "the container is killed 12 s after it first served, and loses its caches",
    "docker": "Docker is restarted",
    "power": "the host's power is cut under load",
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
        f"a bare host answers after {first['seconds']} s, {first['executions']} remote "
        f"executions; the second run: {second['changes']} changes, {second['executions']} "
        f"remote executions, {second['seconds']} s"
    )
    yield "deploy", text
    captures = runs["captures"]
    codes = [
        f"{load}: " + ", ".join(f"{name} {item['code']}" for name, item in captures[load].items())
        for load in ("idle", "busy")
    ]
    text = (
        f"exit codes of commands with the GPU {'; '.join(codes)}; `smoke`, which checks "
        f"answers for sense: {captures['smoke']['code']}"
    )
    yield "captures", text
    memory = runs["memory"]
    took = memory["memory"]
    text = (
        f"a share of {memory['share']} of {memory['total_gib']} GiB: weights "
        f"{took['weights_gib']} GiB, KV cache {took['cache_gib']} GiB "
        f"({took['cache_tokens']:,.0f} tokens), CUDA graphs {took['graphs_gib']} GiB; "
        f"nvidia-smi reports {memory['held_mib']:,} MiB, "
        f"{memory['held_mib'] / memory['share'] / memory['total_gib'] / 1024:.3f}x the plan's sum"
    )
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
        f"EngineCore is killed: the engine ends with code 0 and serves again after "
        f"{runs['killed']['seconds to health']} s"
    )
    yield "killed", text
    for step, fault in _FAULTS.items():
        run = runs[step]
        row = f"{fault}: the service answers after {run['seconds to health']} s; `doctor`"
        yield step, f"{row} {run['doctor']['code']}{_deployed(run)}"
    bench = runs["bench"]
    yield (
        "bench",
        "; ".join(
            f"{name} {bench['client'][name]} ms by `vllm bench serve`, {own} by the engine"
            for name, own in bench["histograms"].items()
        ),
    )
    yield "sleep", _sleep(runs["sleep"])
    yield from _releases(runs)
    yield from _speeds(
        "proxy", runs["proxy"]["runs"], ("engine", "proxy"), "at the engine's socket"
    )
    yield from _several(runs["replicas"], runs["ranks"])


def _deployed(run: dict[str, Any]) -> str:
    deploy = run.get("deploy")
    return f", the next deploy: {deploy['changes']} changes" if deploy else ""


def _sleep(run: dict[str, Any]) -> str:
    shown = [f"awake, the engine holds {run['awake']['gpu_mib']:,} MiB of the GPU"]
    for nap in {nap["level"]: nap for nap in run["naps"]}.values():  # the last round of each level
        held = f"{nap['asleep']['gpu_mib']:,} MiB after {nap['seconds to sleep']:.1f} s"
        answer = f"an answer {nap['seconds to an answer']:.1f} s after waking"
        shown.append(f"level {nap['level']}: {held}, {answer}")
    return "; ".join(shown)


def _releases(runs: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    same = runs["reload"]["before"] == runs["reload"]["after"]
    yield (
        "reload",
        f"the container {'keeps' if same else 'loses'} its GPU when systemd reloads its units",
    )
    share = runs["share"]
    text = (
        f"a release with 0.995 of the memory was {share['outcome']}, down for "
        f"{share['down_seconds']} s: " + "; ".join(share["observed"])
    )
    yield "share", text
    yield "noise", f"a release with weights of noise was {runs['noise']['outcome']}"


def _several(replicas: dict[str, Any], ranks: dict[str, Any]) -> Iterator[tuple[str, str]]:
    text = (
        f"a roll-out over two hosts behind one address, with 16 clients: "
        f"{replicas['served']:,} answers, {replicas['failed']} failed; the next run: "
        f"{replicas['again']['changes']} changes"
    )
    yield "replicas", text
    _, _, delay = next(_medians(replicas["streams"], 2))
    first, more = delay["proxy"], delay["address"] - delay["proxy"]
    yield (
        "replicas",
        f"1 at a time: first token after {first:.1f} ms, {more:+.1f} ms through the address",
    )
    yield from _speeds("replicas", replicas["streams"], ("proxy", "address"), "at one host's proxy")
    rates = "; ".join(
        f"{streams} at a time: {rate['ranks']:,.0f} tokens/s"
        for streams, rate, _ in _medians(ranks["streams"])
    )
    health = "seconds to health"
    text = (
        f"one model over two hosts by NCCL and a virtual network: deployed in "
        f"{ranks['deploy']['seconds']} s; {rates}; the model answers {ranks['follower'][health]} s "
        f"after the follower's death (without its caches), {ranks['head'][health]} s after the "
        "head's death"
    )
    yield "ranks", text


def _medians(
    measured: list[dict[str, Any]], least: int = 3
) -> Iterator[tuple[int, dict[str, float], dict[str, float]]]:
    """Number of streams, with tokens/s and milliseconds to the first token by measured route."""
    ways: dict[int, dict[str, list[dict[str, Any]]]] = {}
    for run in measured:
        if run["tokens"] >= least:
            ways.setdefault(run["streams"], {}).setdefault(run["way"], []).append(run)
    for streams, way in ways.items():
        rate, delay = (
            {name: statistics.median(item[key] for item in items) for name, items in way.items()}
            for key in ("tokens_per_second", "first_token_ms")
        )
        yield streams, rate, delay


def _speeds(
    step: str, measured: list[dict[str, Any]], ways: tuple[str, str], where: str
) -> Iterator[tuple[str, str]]:
    base, way = ways
    for streams, rate, delay in _medians(measured):
        text = (
            f"{streams} at a time: {rate[base]:,.0f} tokens/s {where}, "
            f"{rate[way] / rate[base]:.3f}x through the {way}; first token after "
            f"{delay[base]:.1f} ms, {delay[way] - delay[base]:+.1f} ms"
        )
        yield step, text
