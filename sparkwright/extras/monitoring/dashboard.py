"""The Grafana dashboard: what the services do, how well they draft, and what their hosts bear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_CHOSEN = 'host=~"$host",service=~"$service"'
_HOST = 'host=~"$host"'
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WHERE = "{{host}} {{service}}"


@dataclass(frozen=True)
class _Panel:
    """One graph: queries with their legends, and its unit in Grafana's words."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str
    kind: str = "timeseries"
    most: float | None = None


def _rate(metric: str, by: str = "host, service", more: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{{{_CHOSEN}{more}}}[$__rate_interval]))"


def _gauge(metric: str, function: str = "sum") -> str:
    return f"{function} by (host, service) ({metric}{{{_CHOSEN}}})"


def _ratio(part: str, whole: str) -> str:
    return f"{_rate(part)} / {_rate(whole)}"


def _percentiles(metric: str) -> tuple[tuple[str, str], ...]:
    buckets = _rate(f"{metric}_bucket", "host, service, le")
    return tuple(
        (f"histogram_quantile({share}, {buckets})", f"{_WHERE} {name}")
        for share, name in ((0.5, "median"), (0.95, "95 %"))
    )


_DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
_ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
_DRAFTS = "vllm:spec_decode_num_drafts_total"
_BY_PLACE = "vllm:spec_decode_num_accepted_tokens_per_pos_total"

_ROWS: tuple[tuple[str, tuple[_Panel, ...]], ...] = (
    (
        "What is wrong",
        (
            _Panel(
                "Findings of the watch",
                ((f"sparkwright_finding{{{_HOST}}}", "{{host}} {{service}} {{diagnosis}}"),),
                "none", "table",
            ),
            _Panel("Answering", ((f'up{{job="vllm",{_CHOSEN}}}', _WHERE),), "none", "stat", 1),
        ),
    ),
    (
        "Load",
        (
            _Panel("Generated tokens", ((_rate("vllm:generation_tokens_total"), _WHERE),), "short"),
            _Panel("Prompt tokens", ((_rate("vllm:prompt_tokens_total"), _WHERE),), "short"),
            _Panel(
                "Requests",
                (
                    (_gauge("vllm:num_requests_running"), f"{_WHERE} running"),
                    (_gauge("vllm:num_requests_waiting"), f"{_WHERE} waiting"),
                ),
                "short",
            ),
            _Panel(
                "Requests that ended, by reason",
                ((_rate("vllm:request_success_total", "finished_reason"), "{{finished_reason}}"),),
                "reqps",
            ),
        ),
    ),
    (
        "Latency",
        (
            _Panel("To the first token", _percentiles("vllm:time_to_first_token_seconds"), "s"),
            _Panel("Between tokens", _percentiles("vllm:inter_token_latency_seconds"), "s"),
            _Panel("Whole request", _percentiles("vllm:e2e_request_latency_seconds"), "s"),
            _Panel("In the queue", _percentiles("vllm:request_queue_time_seconds"), "s"),
        ),
    ),
    (
        "Speculation",
        (
            _Panel(
                "Accepted share of drafted tokens",
                ((_ratio(_ACCEPTED, _DRAFTED), _WHERE),), "percentunit", most=1,
            ),
            _Panel(
                "Tokens per step (mean acceptance length)",
                ((f"1 + {_ratio(_ACCEPTED, _DRAFTS)}", _WHERE),), "short",
            ),
            _Panel(
                "Accepted by place in the draft",
                ((f"{_rate(_BY_PLACE, 'position')} / ignoring(position) group_left "
                  f"sum(rate({_DRAFTS}{{{_CHOSEN}}}[$__rate_interval]))", "{{position}}"),),
                "percentunit", most=1,
            ),
        ),
    ),
    (
        "Cache",
        (
            _Panel(
                "KV cache in use", ((_gauge("vllm:kv_cache_usage_perc", "max"), _WHERE),),
                "percentunit", most=1,
            ),
            _Panel(
                "Prefix cache hits",
                ((_ratio("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
                  _WHERE),),
                "percentunit", most=1,
            ),
            _Panel("Preemptions", ((_rate("vllm:num_preemptions_total"), _WHERE),), "ops"),
        ),
    ),
    (
        "Hosts",
        (
            _Panel(
                "Memory available", ((f"node_memory_MemAvailable_bytes{{{_HOST}}}", "{{host}}"),),
                "bytes",
            ),
            _Panel(
                "Waiting for memory",
                ((f"rate(node_pressure_memory_waiting_seconds_total{{{_HOST}}}"
                  "[$__rate_interval])", "{{host}}"),),
                "percentunit",
            ),
            _Panel(
                "Disks free",
                ((f'node_filesystem_avail_bytes{{{_HOST},fstype!~"tmpfs|overlay|vfat"}}',
                  "{{host}} {{mountpoint}}"),),
                "bytes",
            ),
        ),
    ),
)  # fmt: skip


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    down = 0
    for title, row in _ROWS:
        place = {"h": 1, "w": 24, "x": 0, "y": down}
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "gridPos": place,
                       "collapsed": False, "panels": []})  # fmt: skip
        down += 1
        wide = 24 // len(row)
        for index, panel in enumerate(row):
            place = {"h": 8, "w": wide, "x": wide * index, "y": down}
            panels.append(_panel(panel, len(panels) + 1, place))
        down += 8
    return {
        "uid": "sparkwright",
        "title": "sparkwright: vLLM on Sparks and RTX 50",
        "tags": ["sparkwright", "vllm"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource(), _variable("host"), _variable("service")]},
        "panels": panels,
    }


def _panel(panel: _Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.most is not None:
        defaults["max"] = panel.most
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "gridPos": place,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index), "expr": query, "legendFormat": legend,
                "datasource": _SOURCE, "instant": panel.kind != "timeseries",
                **({"format": "table"} if panel.kind == "table" else {}),
            }
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }  # fmt: skip


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"}


def _variable(label: str) -> dict[str, Any]:
    return {
        "name": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": f'label_values(up{{job="vllm"}}, {label})',
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
