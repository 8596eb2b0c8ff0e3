"""Reading what a host says of itself: metrics, GPU, units, file systems. Changes nothing.

Shared by the watch, which runs on the host for ever, and by the doctor, which looks once.
Standard library only; Python 3.10.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: What nvidia-smi is asked; a driver that does not know a field is asked again without it.
GPU_FIELDS = (
    *("name", "temperature.gpu", "power.draw", "utilization.gpu", "clocks.sm", "clocks.max.sm"),
    "clocks_event_reasons.active",
)
UNIT_FIELDS = (
    "LoadState,ActiveState,SubState,Result,NRestarts,ExecMainStatus,ExecMainStartTimestamp,"
    "UnitFileState,NeedDaemonReload"
)
_SAMPLE = re.compile(r"^(vllm:[a-z0-9_]+)(?:\{(.*)\})? (\S+)$")
#: Labels whose values are kept apart; everything else is summed over engines and models.
_KEPT = re.compile(r'finished_reason="([a-z_]+)"')


def command(*words: str, timeout: float = 10) -> dict[str, Any]:
    """A command's outcome; ``code`` is None when it hung or is not there."""
    if shutil.which(words[0]) is None:
        return {"code": None, "out": "", "err": f"{words[0]} is not installed"}
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"code": None, "out": "", "err": f"{words[0]}: no answer within {timeout:.0f} s"}
    out, err = (said.decode(errors="replace") for said in (done.stdout, done.stderr))
    return {"code": done.returncode, "out": out, "err": err}


def get(address: str, port: int, path: str, timeout: float = 5) -> tuple[int | None, str]:
    """Status and text of a GET; None and the error's words when there is no answer."""
    connection = http.client.HTTPConnection(address, port, timeout=timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return None, str(error) or type(error).__name__
    finally:
        connection.close()


def samples(text: str) -> dict[str, float]:
    """vLLM's own counters and gauges of a /metrics page, over all engines.

    Histograms give their ``_sum`` and ``_count``; requests that ended are kept apart by reason, as
    ``vllm:request_success_total:length``. Shares (``_perc``) give the highest, not the sum.
    """
    found: dict[str, float] = {}
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match is None or match[1].endswith(("_bucket", "_created", "_info", "_by_reason")):
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        reason = _KEPT.search(match[2] or "")
        name = f"{match[1]}:{reason[1]}" if reason else match[1]
        found[name] = (
            max(found.get(name, 0.0), value)
            if name.endswith("_perc")
            else found.get(name, 0.0) + value
        )
    return found


def metrics(address: str, port: int) -> dict[str, float] | None:
    """A service's samples now; None when it does not tell them."""
    status, text = get(address, port, "/metrics")
    return samples(text) if status == 200 else None


def gpus() -> dict[str, Any]:
    """``{"code", "err", "rows": [{field: text}]}`` of nvidia-smi."""
    fields = list(GPU_FIELDS)
    while True:
        query = f"--query-gpu={','.join(fields)}"
        done = command("nvidia-smi", query, "--format=csv,noheader")
        unknown = re.search(r'Field "([^"]+)" is not a valid field', done["out"] + done["err"])
        if unknown is None or unknown[1] not in fields or len(fields) == 1:
            break
        fields.remove(unknown[1])
    rows = []
    if done["code"] == 0:
        for line in done["out"].splitlines():
            words = [word.strip() for word in line.split(",")]
            if len(words) == len(fields):
                rows.append(dict(zip(fields, words, strict=True)))
    said = (done["err"] or ("" if done["code"] == 0 else done["out"])).strip()
    return {"code": done["code"], "err": said, "rows": rows}


def unit(name: str) -> dict[str, str]:
    """systemd's view of a unit; empty when systemd does not answer."""
    shown = command("systemctl", "show", "-p", UNIT_FIELDS, name)["out"]
    return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)


def digest(place: Path) -> str | None:
    """sha256 of a file; None when it is not there."""
    try:
        return hashlib.sha256(place.read_bytes()).hexdigest()
    except OSError:
        return None


def disks(paths: Iterable[str]) -> list[dict[str, Any]]:
    """The file systems below these paths, each once: ``{"path", "free", "total"}`` in bytes."""
    found: dict[int, dict[str, Any]] = {}
    for path in paths:
        place = Path(path)
        while not place.exists():
            place = place.parent
        stat = os.statvfs(place)
        free, total = stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize
        found.setdefault(place.stat().st_dev, {"path": path, "free": free, "total": total})
    return list(found.values())
