"""Alert rules: the diagnoses that metrics can show, under the doctor's names.

vLLM's counters by themselves, node_exporter's, and the findings of the watch, which it leaves for
node_exporter's textfile collector: those need nothing but the collector's directory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparkwright.checks.service.diagnose import CHECKS
from sparkwright.findings.check import Check
from sparkwright.host.watch import thresholds

_BY = "by (host, service)"
_DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
_ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
_DISKS = 'fstype!~"tmpfs|overlay|squashfs|ramfs|devtmpfs|vfat"'


@dataclass(frozen=True)
class _Alert:
    """An alert: the diagnosis that it is, when it holds, for how long, and what it says."""

    diagnosis: str
    expression: str
    hold: str
    summary: str
    severity: str | None = None


def _sum(function: str, metric: str, span: str) -> str:
    return f"sum {_BY} ({function}({metric}[{span}]))"


def _share(span: str, offset: str = "") -> str:
    accepted = f"sum {_BY} (increase({_ACCEPTED}[{span}]{offset}))"
    return f"{accepted} / sum {_BY} (increase({_DRAFTED}[{span}]{offset}))"


def _of(name: str, span: str) -> str:
    """Share of the requests that ended in this way."""
    metric = "vllm:request_success_total"
    chosen = f'{metric}{{finished_reason="{name}"}}'
    return f"{_sum('increase', chosen, span)} / {_sum('increase', metric, span)}"


def _alerts() -> tuple[_Alert, ...]:
    limits = thresholds.THRESHOLDS
    stuck, full = (f"{seconds // 60}m" for seconds in (limits.stuck_seconds, limits.cache_seconds))
    enough = f"{_sum('increase', _DRAFTED, '30m')} > {limits.drafted}"
    still = " and ".join(
        f"{_sum('increase', f'vllm:{name}', stuck)} == 0"
        for name in ("generation_tokens_total", "prompt_tokens_total",
                     "iteration_tokens_total_count")
    )  # fmt: skip
    first = "vllm:time_to_first_token_seconds"
    wait = f"{_sum('rate', f'{first}_sum', '5m')} / {_sum('rate', f'{first}_count', '5m')}"
    left = f"node_filesystem_avail_bytes{{{_DISKS}}}"
    ended = _sum("increase", "vllm:request_success_total", "1h")
    enough_ended = f"{ended} >= {limits.ended}"
    return (
        _Alert(
            "wedge",
            f"{_sum('min_over_time', 'vllm:num_requests_running', stuck)} > 0 and {still}",
            "1m", f"requests run and no token came out for {stuck}",
        ),
        _Alert(
            "acceptance-collapse", f"{_share('30m')} < {limits.collapsed} and {enough}",
            "5m", "{{ $value | humanizePercentage }} of drafted tokens accepted",
        ),
        _Alert(
            "acceptance-decays",
            f"{_share('30m')} < {limits.low} and {_share('30m')} >= {limits.collapsed} "
            f"and {_share('30m')} < {limits.decayed} * ({_share('6h', ' offset 30m')}) "
            f"and {enough}",
            "10m", "{{ $value | humanizePercentage }} of drafted tokens accepted, more before",
        ),
        _Alert(
            "kv-cache-full",
            f"max {_BY} (min_over_time(vllm:kv_cache_usage_perc[{full}])) >= {limits.cache_full}",
            "0m", f"the KV cache is full for {full}",
        ),
        _Alert(
            "preemptions", f"{_sum('increase', 'vllm:num_preemptions_total', '5m')} > 0",
            "10m", "requests are preempted for ten minutes",
        ),
        _Alert(
            "queue-saturated",
            f"{wait} > {limits.queue_seconds:g} and "
            f"{_sum('min_over_time', 'vllm:num_requests_waiting', '5m')} > 0",
            "5m", "{{ $value | humanizeDuration }} to the first token, and requests wait",
        ),
        _Alert(
            "answers-cut",
            f"{_of('length', '1h')} > {limits.cut} and {enough_ended}",
            "10m", "{{ $value | humanizePercentage }} of the answers end by their length",
        ),
        _Alert(
            "clients-give-up",
            f"{_of('abort', '1h')} > {limits.abandoned} and {enough_ended}",
            "10m", "{{ $value | humanizePercentage }} of the requests are given up",
        ),
        _Alert(
            "not-serving",
            # Of a group of which one runs it is enough that any does.
            'up{job="vllm",exclusive=""} == 0 '
            'or max by (host, exclusive) (up{job="vllm",exclusive!=""}) == 0',
            "15m", "/metrics gives no answer for longer than a boot takes",
        ),
        # One start within an hour may be a deploy's.
        _Alert(
            "restarts",
            f'changes(process_start_time_seconds{{job="vllm"}}[1h]) > {limits.restarts_hour}',
            "0m", "{{ $value }} starts within an hour",
        ),
        _Alert(
            "given-up", 'node_systemd_unit_state{name=~"sparkwright-.+",state="failed"} == 1',
            "1m", "{{ $labels.name }} has failed",
        ),
        _Alert(
            "disk-full",
            f"{left} / node_filesystem_size_bytes{{{_DISKS}}} < {limits.disk_least}",
            "5m", "{{ $labels.mountpoint }}: {{ $value | humanizePercentage }} free",
        ),
        _Alert(
            "disk-fills",
            f"predict_linear({left}[6h], {limits.disk_hours * 3600:.0f}) < 0 "
            f"and deriv({left}[30m]) < 0",
            "30m", f"{{{{ $labels.mountpoint }}}} is full within {limits.disk_hours:g} h",
        ),
        _Alert(
            "disk-fills",
            f"predict_linear({left}[6h], {limits.disk_urgent_hours * 3600:.0f}) < 0 "
            f"and deriv({left}[30m]) < 0",
            "10m", f"{{{{ $labels.mountpoint }}}} is full within {limits.disk_urgent_hours:g} h",
            "error",
        ),
        _Alert(
            "memory-pressure",
            f"100 * rate(node_pressure_memory_waiting_seconds_total[5m]) > {limits.pressure:g}",
            "5m", "processes wait for memory {{ $value }} % of the time",
        ),
        _Alert(
            "memory-scarce",
            f"node_memory_MemAvailable_bytes < {limits.memory_least_gib} * 1024^3",
            "10m", "{{ $value | humanize1024 }}B available",
        ),
        _Alert(
            "oom-killer", "increase(node_vmstat_oom_kill[1h]) > 0",
            "0m", "processes were killed for memory",
        ),
        _Alert(
            "watch-asleep", f"time() - sparkwright_watch_seconds > {limits.watch_silent_seconds}",
            "5m", "the watch has not looked for {{ $value | humanizeDuration }}",
        ),
    )  # fmt: skip


#: What only the watch can find: GPU and drift are in no exporter that every host has.
_WATCHED = ("drift", "gpu-heat", "gpu-power-brake", "gb10-low-power", "gpu-silent")


def rules() -> dict[str, Any]:
    """The rule file, as data."""
    checks = CHECKS.texts
    own = [_rule(alert, checks[alert.diagnosis]) for alert in _alerts()]
    watched = [
        _rule(
            _Alert(
                name, f'max by (host, service) (sparkwright_finding{{diagnosis="{name}"}}) == 1',
                "0m", "the watch on the host sees it",
            ),
            checks[name],
        )
        for name in _WATCHED
    ]  # fmt: skip
    return {"groups": [{"name": "sparkwright", "rules": [*own, *watched]}]}


def _rule(alert: _Alert, check: Check) -> dict[str, Any]:
    remedy = check.remedy.replace("UNIT", "sparkwright-{{ $labels.service }}")
    where = "{{ $labels.host }}{{ if $labels.service }}: {{ $labels.service }}{{ end }}"
    return {
        "alert": "Sparkwright" + "".join(word.title() for word in check.id.split("-")),
        "expr": alert.expression,
        "for": alert.hold,
        "labels": {
            "severity": alert.severity or str(check.severity),
            "diagnosis": check.id,
        },
        "annotations": {
            "summary": f"{where}: {alert.summary}",
            "description": f"{check.reason}. {remedy}",
            "source": check.source,
        },
    }
