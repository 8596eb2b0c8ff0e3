"""The load generator, NVIDIA's AIPerf: what it is given, and what it reports.

AIPerf is a program of its own in a venv of its own (README, decisions); nothing of it is imported
here. A run is described by a file of JSON, which is YAML too, and leaves a folder:
``phase_manifest.json``, and for each phase ``phases/<name>/profile_export_aiperf.json`` and
``server_metrics.json``, the change of the server's own /metrics over the phase. Times in
milliseconds there, in seconds here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparkwright.extras.bench.loads import Load
from sparkwright.extras.bench.results import Cell, Kind, Spread

NAME = "aiperf"
#: What a result calls it. Other prompts, or sent otherwise, are other figures: the number goes up,
#: and results of another name do not count as a service's past.
LABEL = "sparkwright's prompts 1 by aiperf"
#: Of a request, in seconds: 64 prompts of 33000 tokens may wait for each other that long.
_TIMEOUT = 1800.0
_LONGEST = 200
_FILES = ("dataset.jsonl", "tokenizer")


def config(
    *,
    url: str,
    model: str,
    loads: Sequence[Load],
    max_tokens: int,
    folder: str,
    body: Mapping[str, Any] | None = None,
    metrics: str | None = None,
) -> dict[str, Any]:
    """AIPerf's configuration of one batch. It takes the API key from OPENAI_API_KEY.

    Args:
        folder: holds the dataset and the tokenizer, and is left the results in ``out``.
        body: more keys of each request's body.
        metrics: where the server's are read, if not at ``url`` without a key.
    """
    phases = []
    for load in loads:
        common = {"type": "concurrency", "concurrency": load.concurrency}
        if load.warm_up:
            phases.append(
                {"name": f"w{load.concurrency}", "kind": "warmup", "requests": load.warm_up,
                 "excludeFromResults": True, **common}
            )  # fmt: skip
        phases.append(
            {"name": phase(load), "kind": "profiling", "requests": load.requests, **common}
        )
    return {
        "schemaVersion": "2.0",
        "randomSeed": 1,
        "benchmark": {
            "model": model,
            "endpoint": {
                "url": url,
                "type": "chat",
                "streaming": True,
                "apiKey": "${OPENAI_API_KEY}",
                "timeout": _TIMEOUT,
                # Tokens as the server counts them: no tokenizer of the model is needed here.
                "useServerTokenCount": True,
                "extra": {
                    "temperature": 0,
                    "max_tokens": max_tokens,
                    # As on the card of Qwen3.6-35B-A3B-heretic-NVFP4, 'Test methodology notes'.
                    "chat_template_kwargs": {"enable_thinking": False},
                    **(body or {}),
                },
            },
            # It loads one whether it is used or not, and would fetch one from outside.
            "tokenizer": {"name": f"{folder}/{_FILES[1]}"},
            "dataset": {
                "type": "file",
                "path": f"{folder}/{_FILES[0]}",
                "format": "single_turn",
                "sampling": "sequential",
            },
            "phases": phases,
            **({"serverMetrics": {"urls": [metrics]}} if metrics else {}),
        },
    }


def files(prompts: Sequence[str]) -> dict[str, Any]:
    """What lies beside the configuration: path -> JSON, or a list of JSON for lines."""
    return {
        _FILES[0]: [{"text": prompt} for prompt in prompts],
        f"{_FILES[1]}/tokenizer.json": {
            "version": "1.0",
            "added_tokens": [],
            "pre_tokenizer": {"type": "Whitespace"},
            "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"},
        },
        f"{_FILES[1]}/tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": "[UNK]",
        },
    }


def words(program: str, folder: str) -> list[str]:
    """The command line. Nothing secret is in it."""
    return [
        program, "profile", "--config", f"{folder}/config.json", "--artifact-dir", f"{folder}/out",
        "--ui", "none", "--no-gpu-telemetry",
    ]  # fmt: skip


#: Of the environment beside the key. Not HF_HUB_OFFLINE: with it AIPerf finds no local tokenizer.
ENVIRONMENT = {"HF_HUB_DISABLE_TELEMETRY": "1", "NO_COLOR": "1"}
KEY_VARIABLE = "OPENAI_API_KEY"


def phase(load: Load) -> str:
    """The name of a load's phase."""
    return f"c{load.concurrency}"


def cell(
    category: Kind,
    load: Load,
    *,
    prompt_tokens: int | None,
    max_tokens: int,
    errors: int,
    report: Mapping[str, Any] | None,
    metrics: Mapping[str, Any] | None,
) -> Cell:
    """One phase's report as a cell.

    Args:
        prompt_tokens: the context tier; None takes the mean of what was sent, in tens.
        errors: requests that failed.
        report: ``profile_export_aiperf.json``; None where every request failed.
        metrics: ``server_metrics.json``; None where the server's were not to be had.
    """
    report = report or {}
    sent = _value(report, "input_sequence_length", "avg") or 0.0
    acceptance, length = acceptances(metrics or {})
    return Cell(
        category=category,
        concurrency=load.concurrency,
        prompt_tokens=10 * round(sent / 10) if prompt_tokens is None else prompt_tokens,
        max_tokens=max_tokens,
        requests=round(_value(report, "request_count", "avg") or 0),
        errors=errors,
        ttft=_spread(report, "time_to_first_token"),
        tpot=_spread(report, "inter_token_latency"),
        decode=_value(report, "output_token_throughput_per_user", "p50"),
        decode_total=_value(report, "output_token_throughput", "avg"),
        prefill=_value(report, "prefill_throughput_per_user", "p50"),
        acceptance=acceptance,
        acceptance_length=length,
    )


def acceptances(metrics: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Share of the draft that was accepted, and mean tokens per step (1 + accepted / drafts).

    From vLLM's counters vllm:spec_decode_num_{drafts,draft_tokens,accepted_tokens}; None without
    speculation, whose counters are then not there.
    """
    drafts, tokens, accepted = (
        counted(metrics, f"vllm:spec_decode_num_{name}")
        for name in ("drafts", "draft_tokens", "accepted_tokens")
    )
    if not drafts or not tokens or accepted is None:
        return None, None
    return min(1.0, accepted / tokens), 1 + accepted / drafts


def counted(metrics: Mapping[str, Any], name: str, of: str = "total") -> float | None:
    """A counter's change over the phase, or a histogram's ``count`` or ``sum``; all engines."""
    found = [
        float(value)
        for endpoint in metrics.get("data", {}).get("endpoint_summaries", {}).values()
        for series in endpoint.get("metrics", {}).get(name, {}).get("series", ())
        if (value := series.get("stats", {}).get(of)) is not None
    ]
    return sum(found) if found else None


def foreign_requests(load: Load, metrics: Mapping[str, Any]) -> int:
    """Requests of other clients that the server began meanwhile; 0 where not certain.

    The metrics are read three times a second, so that requests of the warm-up may be among them.
    """
    begun = counted(metrics, "vllm:time_to_first_token_seconds", "count")
    more = round(begun or 0) - load.requests - load.warm_up
    return more if more > 0 else 0


def failed(manifest: Mapping[str, Any]) -> dict[str, int]:
    """``phase_manifest.json``: requests that failed, by phase; one not begun is not in it."""
    return {
        str(entry["phase_name"]): int(entry.get("error_request_count") or 0)
        for entry in manifest.get("phases", ())
    }


def reasons(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Why requests failed, in the server's own words, each once and in short."""
    found = [
        " ".join(str(error.get("error_details", {}).get("message", "")).split())[:_LONGEST]
        for entry in manifest.get("phases", ())
        for error in entry.get("error_summary") or ()
    ]
    return tuple(dict.fromkeys(filter(None, found)))


def _spread(report: Mapping[str, Any], name: str) -> Spread | None:
    p50, p95 = (_value(report, name, key) for key in ("p50", "p95"))
    if p50 is None:
        return None
    return Spread(p50=p50 / 1000, p95=None if p95 is None else p95 / 1000)


def _value(report: Mapping[str, Any], name: str, key: str) -> float | None:
    value = (report.get(name) or {}).get(key)
    return float(value) if isinstance(value, int | float) else None
