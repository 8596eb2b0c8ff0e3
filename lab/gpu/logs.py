"""Measure an engine's start by its log: seconds of each phase, and memory.

Lines are as in `journalctl -o short-unix`: seconds since 1970 first. `python -m lab.gpu.logs FILE`
prints the start in a file with one start.
"""

import json
import re
import sys
from pathlib import Path

#: Texts in the engine's output at the end of each phase; the first text in the log counts.
_PHASES = {
    "container": r"Attaching to ",
    "imports": r"non-default args",
    "configuration": r"Initializing a V1 LLM engine",
    "weights": r"Model loading took",
    "compiling": r"torch.compile took",
    "profiling": r"Available KV cache memory",
    "graphs": r"Graph capturing finished",
    "warm-up": r"init engine \(",
    "server": r"Application startup complete",
}
_MEMORY = {
    "weights_gib": r"Model loading took ([\d.]+) GiB",
    "cache_gib": r"Available KV cache memory: ([\d.]+) GiB",
    "cache_tokens": r"GPU KV cache size: ([\d,]+) tokens",
    "graphs_gib": r"Graph capturing finished in \d+ secs, took ([\d.]+) GiB",
}


def phases(lines: list[str]) -> dict[str, float]:
    """Seconds that each phase of a start took, in order; the sum is under `total`.

    Without CUDA graphs, an engine's start has no phases of compiling and capturing.
    """
    begun = before = float(lines[0].split()[0])
    result = {}
    for name, pattern in _PHASES.items():
        at = next((float(line.split()[0]) for line in lines if re.search(pattern, line)), None)
        if at is not None:
            result[name] = round(at - before, 1)
            before = at
    return {**result, "total": round(before - begun, 1)}


def memory(lines: list[str]) -> dict[str, float]:
    """GiB of weights, KV cache and CUDA graphs, and the cache's tokens."""
    text = "\n".join(lines)
    matches = {name: re.findall(pattern, text) for name, pattern in _MEMORY.items()}
    return {name: float(values[-1].replace(",", "")) for name, values in matches.items() if values}


if __name__ == "__main__":
    lines = [line for line in Path(sys.argv[1]).read_text().splitlines() if line[:1].isdigit()]
    print(json.dumps({"phases": phases(lines), "memory": memory(lines)}, indent=1))
