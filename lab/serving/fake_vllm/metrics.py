"""`/metrics`: the names, help texts and buckets of the real vLLM, with this server's own numbers.

The families come from `metrics/` beside the package, as a running vLLM printed them. Speculation
has metrics only with a speculative config.
"""

import gc
import json
import platform
import resource
import time
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .server_settings import Settings

TABLES = Path(__file__).resolve().parent.parent / "metrics"
_OWN_TABLE = ("0.32.0",)
"""Versions with their own table; all other versions print the metrics of 0.24.0."""

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters, gauges and histograms of one server, for use from a single thread."""

    def __init__(self, settings: Settings, version: str) -> None:
        table = version if version in _OWN_TABLE else "0.24.0"
        text = (TABLES / f"{table}.json").read_text(encoding="utf-8")
        self._families: list[dict[str, Any]] = json.loads(text)["families"]
        self._settings = settings
        self._started = time.time()
        self._values: dict[tuple[str, Labels], float] = {}
        self._histograms: dict[tuple[str, Labels], _Histogram] = {}
        self._buckets = {
            family["name"]: [float(limit) for limit in family["buckets"]]
            for family in self._families
            if "buckets" in family
        }
        self.set("vllm:engine_sleep_state", 1, sleep_state="awake")

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add an amount to a counter or a gauge; a gauge also takes a negative amount."""
        key = (name, tuple(sorted(labels.items())))
        self._values[key] = self._values.get(key, 0.0) + amount

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        self._values[(name, tuple(sorted(labels.items())))] = value

    def get(self, name: str, **labels: str) -> float:
        """The value of a counter or gauge; 0 before its first use."""
        return self._values.get((name, tuple(sorted(labels.items()))), 0.0)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Put a value into a histogram or summary; a name that the version lacks is ignored."""
        key = (name, tuple(sorted(labels.items())))
        if key not in self._histograms:
            self._histograms[key] = _Histogram(self._buckets.get(name, []))
        self._histograms[key].observe(value)

    def render(self) -> str:
        """The text for Prometheus."""
        self._read_process()
        lines: list[str] = []
        for family in self._families:
            name: str = family["name"]
            if name.startswith("vllm:spec_decode") and not self._settings.speculation:
                continue
            samples = list(self._samples(family))
            if not samples:
                continue
            lines += [
                f"# HELP {name} {family['help']}",
                f"# TYPE {name} {family['type']}",
                *samples,
            ]
            if family["type"] != "gauge" and not name.startswith(("process_", "python_")):
                lines += self._created(family)
        return "\n".join(lines) + "\n"

    def _samples(self, family: dict[str, Any]) -> Iterator[str]:
        name: str = family["name"]
        if family["type"] in ("histogram", "summary"):
            for labels in self._label_sets(family):
                histogram = self._histograms.get((name, labels)) or _Histogram(
                    self._buckets.get(name, [])
                )
                yield from histogram.lines(name, self._all_labels(family, labels))
            return
        for labels in self._label_sets(family):
            value = 1.0 if name == "vllm:cache_config_info" else self._values.get((name, labels), 0)
            yield f"{name}{_braces(self._all_labels(family, labels))} {number(value)}"

    def _created(self, family: dict[str, Any]) -> list[str]:
        base = family["name"]
        if family["type"] == "counter":
            base = base.removesuffix("_total")
        name = f"{base}_created"
        lines = [f"# HELP {name} {family['help']}", f"# TYPE {name} gauge"]
        for labels in self._label_sets(family):
            lines.append(
                f"{name}{_braces(self._all_labels(family, labels))} {number(self._started)}"
            )
        return lines

    def _label_sets(self, family: dict[str, Any]) -> list[Labels]:
        name: str = family["name"]
        if name == "vllm:spec_decode_num_accepted_tokens_per_pos_total":
            tokens = self._settings.speculation.tokens if self._settings.speculation else 0
            return [(("position", str(position)),) for position in range(tokens)]
        if name == "vllm:cache_config_info":
            return [tuple(sorted(self._cache_labels(family["labels"][0]).items()))]
        if "labelnames" in family:
            store = self._histograms if name in self._buckets or "size" in name else self._values
            return [labels for (of, labels) in store if of == name]
        if name == "python_info":
            major, minor, patch = platform.python_version_tuple()
            facts = {"implementation": "CPython", "major": major, "minor": minor}
            facts |= {"patchlevel": patch, "version": platform.python_version()}
            return [tuple(sorted(facts.items()))]
        return [tuple(sorted(labels.items())) for labels in family.get("labels", [{}])]

    def _all_labels(self, family: dict[str, Any], labels: Labels) -> dict[str, str]:
        own = {"engine": "0"} if family.get("engine") else {}
        if family["name"].startswith("vllm:") and family["name"] != "vllm:cache_config_info":
            own["model_name"] = self._settings.names[0]
        return dict(labels) | own

    def _cache_labels(self, captured: dict[str, str]) -> dict[str, str]:
        settings = self._settings
        return captured | {
            "cache_dtype": settings.kv_cache_dtype,
            "enable_prefix_caching": str(settings.prefix_caching),
            "gpu_memory_utilization": str(settings.gpu_memory_utilization),
        }

    def _read_process(self) -> None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
        self.set("process_virtual_memory_bytes", int(pages[0]) * resource.getpagesize())
        self.set("process_resident_memory_bytes", int(pages[1]) * resource.getpagesize())
        self.set("process_start_time_seconds", self._started)
        self.set("process_cpu_seconds_total", usage.ru_utime + usage.ru_stime)
        self.set("process_open_fds", len(list(Path("/proc/self/fd").iterdir())))
        self.set("process_max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._values[("python_info", self._label_sets({"name": "python_info"})[0])] = 1
        for generation, counts in enumerate(gc.get_stats()):
            label = str(generation)
            self.set("python_gc_collections_total", counts["collections"], generation=label)
            self.set("python_gc_objects_collected_total", counts["collected"], generation=label)
            self.set(
                "python_gc_objects_uncollectable_total", counts["uncollectable"], generation=label
            )


class _Histogram:
    """Counts by bucket; a metric without buckets is a summary, which has only count and sum."""

    def __init__(self, limits: list[float]) -> None:
        self._limits = limits
        self._counts = [0] * len(limits)
        self._count = 0
        self._sum = 0.0

    def observe(self, value: float) -> None:
        if self._limits:
            self._counts[bisect_left(self._limits, value)] += 1
        self._count += 1
        self._sum += value

    def lines(self, name: str, labels: dict[str, str]) -> Iterator[str]:
        running = 0
        for limit, count in zip(self._limits, self._counts, strict=True):
            running += count
            text = "+Inf" if limit == float("inf") else repr(limit)
            yield f"{name}_bucket{_braces(labels | {'le': text})} {number(running)}"
        yield f"{name}_count{_braces(labels)} {number(self._count)}"
        yield f"{name}_sum{_braces(labels)} {number(self._sum)}"


def number(value: float) -> str:
    """A value as Prometheus's Python client writes it: `12.0`, `1.795211879433e+09`."""
    text = repr(float(value))
    point = text.find(".")
    if "e" in text or point <= 6 or value <= 0:
        return text
    mantissa = f"{text[0]}.{text[1:point]}{text[point + 1 :]}".rstrip("0.")
    return f"{mantissa}e+{point - 1:02d}"


def _braces(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items()))
    return "{" + inner + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
