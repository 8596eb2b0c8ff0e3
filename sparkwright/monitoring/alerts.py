"""Alert rules: the diagnoses that metrics can tell, under the doctor's names.

vLLM's counters by themselves, node_exporter's, and the verdicts of the watch, which it leaves for
node_exporter's textfile collector: those need nothing but the collector's directory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparkwright.doctor import CHECKS
from sparkwright.doctor.check import Check
from sparkwright.doctor.thresholds import LIMITS
from sparkwright.doctor.watch import SILENT

_BY = "by (host, service)"
_DRAFTED = "vllm:spec_decode_num_draft_tokens_total"
_ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
_DISKS = 'fstype!~"tmpfs|overlay|squashfs|ramfs|devtmpfs|vfat"'
_STUCK = f"{LIMITS.stuck_seconds // 60}m"
_CACHE = f"{LIMITS.cache_seconds // 60}m"


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
    enough = f"{_sum('increase', _DRAFTED, '30m')} > {LIMITS.drafted}"
    still = " and ".join(
        f"{_sum('increase', f'vllm:{name}', _STUCK)} == 0"
        for name in ("generation_tokens_total", "prompt_tokens_total",
                     "iteration_tokens_total_count")
    )  # fmt: skip
    first = "vllm:time_to_first_token_seconds"
    wait = f"{_sum('rate', f'{first}_sum', '5m')} / {_sum('rate', f'{first}_count', '5m')}"
    left = f"node_filesystem_avail_bytes{{{_DISKS}}}"
    ended = "vllm:request_success_total"
    return (
        _Alert(
            "wedge",
            f"{_sum('min_over_time', 'vllm:num_requests_running', _STUCK)} > 0 and {still}",
            "1m", f"requests run and no token came out for {_STUCK}",
        ),
        _Alert(
            "acceptance-collapse", f"{_share('30m')} < {LIMITS.collapsed} and {enough}",
            "5m", "{{ $value | humanizePercentage }} of drafted tokens accepted",
        ),
        _Alert(
            "acceptance-decays",
            f"{_share('30m')} < {LIMITS.low} and {_share('30m')} >= {LIMITS.collapsed} "
            f"and {_share('30m')} < {LIMITS.decayed} * ({_share('6h', ' offset 30m')}) "
            f"and {enough}",
            "10m", "{{ $value | humanizePercentage }} of drafted tokens accepted, more before",
        ),
        _Alert(
            "kv-cache-full",
            f"max {_BY} (min_over_time(vllm:kv_cache_usage_perc[{_CACHE}])) >= {LIMITS.cache_full}",
            "0m", f"the KV cache is full for {_CACHE}",
        ),
        _Alert(
            "preemptions", f"{_sum('increase', 'vllm:num_preemptions_total', '5m')} > 0",
            "10m", "requests are preempted for ten minutes",
        ),
        _Alert(
            "queue-saturated",
            f"{wait} > {LIMITS.queue_seconds:g} and "
            f"{_sum('min_over_time', 'vllm:num_requests_waiting', '5m')} > 0",
            "5m", "{{ $value | humanizeDuration }} to the first token, and requests wait",
        ),
        _Alert(
            "answers-cut",
            f"{_of('length', '1h')} > 0.5 and {_sum('increase', ended, '1h')} >= 20",
            "10m", "{{ $value | humanizePercentage }} of the answers end by their length",
        ),
        _Alert(
            "clients-give-up",
            f"{_of('abort', '1h')} > 0.25 and {_sum('increase', ended, '1h')} >= 20",
            "10m", "{{ $value | humanizePercentage }} of the requests are given up",
        ),
        _Alert(
            "not-serving", 'up{job="vllm"} == 0',
            "15m", "/metrics gives no answer for longer than a boot takes",
        ),
        # One start within an hour may be a deploy's.
        _Alert(
            "restarts", 'changes(process_start_time_seconds{job="vllm"}[1h]) > 1',
            "0m", "{{ $value }} starts within an hour",
        ),
        _Alert(
            "given-up", 'node_systemd_unit_state{name=~"sparkwright-.+",state="failed"} == 1',
            "1m", "{{ $labels.name }} has failed",
        ),
        _Alert(
            "disk-full",
            f"{left} / node_filesystem_size_bytes{{{_DISKS}}} < {LIMITS.disk_least}",
            "5m", "{{ $labels.mountpoint }}: {{ $value | humanizePercentage }} free",
        ),
        _Alert(
            "disk-fills",
            f"predict_linear({left}[6h], {LIMITS.disk_hours * 3600:.0f}) < 0 "
            f"and deriv({left}[30m]) < 0",
            "30m", f"{{{{ $labels.mountpoint }}}} is full within {LIMITS.disk_hours:g} h",
        ),
        _Alert(
            "disk-fills",
            f"predict_linear({left}[6h], {LIMITS.disk_urgent_hours * 3600:.0f}) < 0 "
            f"and deriv({left}[30m]) < 0",
            "10m", f"{{{{ $labels.mountpoint }}}} is full within {LIMITS.disk_urgent_hours:g} h",
            "error",
        ),
        _Alert(
            "memory-pressure",
            f"100 * rate(node_pressure_memory_waiting_seconds_total[5m]) > {LIMITS.pressure:g}",
            "5m", "processes wait for memory {{ $value }} % of the time",
        ),
        _Alert(
            "memory-scarce", "node_memory_MemAvailable_bytes < 4 * 1024^3",
            "10m", "{{ $value | humanize1024 }}B available",
        ),
        _Alert(
            "oom-killer", "increase(node_vmstat_oom_kill[1h]) > 0",
            "0m", "processes were killed for memory",
        ),
        _Alert(
            "watch-asleep", f"time() - sparkwright_watch_seconds > {SILENT}",
            "5m", "the watch has not looked for {{ $value | humanizeDuration }}",
        ),
    )  # fmt: skip


#: What the watch alone can tell: GPU and drift are in no exporter that every host has.
_WATCHED = ("drift", "gpu-heat", "gpu-power-brake", "gb10-low-power", "gpu-silent")


def rules() -> dict[str, Any]:
    """The rule file, as data."""
    known = {check.name: check for check in CHECKS}
    own = [_rule(alert, known[alert.diagnosis]) for alert in _alerts()]
    watched = [
        _rule(
            _Alert(
                name, f'max by (host, service) (sparkwright_finding{{diagnosis="{name}"}}) == 1',
                "0m", "the watch on the host sees it",
            ),
            known[name],
        )
        for name in _WATCHED
    ]  # fmt: skip
    return {"groups": [{"name": "sparkwright", "rules": [*own, *watched]}]}


def _rule(alert: _Alert, check: Check) -> dict[str, Any]:
    remedy = check.remedy.replace("UNIT", "sparkwright-{{ $labels.service }}")
    where = "{{ $labels.host }}{{ if $labels.service }}: {{ $labels.service }}{{ end }}"
    return {
        "alert": "Sparkwright" + "".join(word.title() for word in check.name.split("-")),
        "expr": alert.expression,
        "for": alert.hold,
        "labels": {
            "severity": alert.severity or str(check.severity),
            "diagnosis": check.name,
        },
        "annotations": {
            "summary": f"{where}: {alert.summary}",
            "description": f"{check.cause}. {remedy}",
            "source": check.source,
        },
    }
