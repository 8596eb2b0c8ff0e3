"""What a host runs and how it came to that. Changes nothing; runs as root (roles/remote.py).

Request: {"services_root", "ports": {service: [address, port]}, "texts": whether to tell the files
of what runs}. Answer: {"now", "lock", "switch", "history": [lines of history.jsonl], "watch": what
the watch holds to be wrong, "services": {name: {...}}}; see sparkwright/status.py.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from pathlib import Path
from typing import Any

_UNIT = "ActiveState,SubState,NRestarts,Result,ActiveEnterTimestamp"


def document(place: Path) -> Any:
    """A file of JSON; None when it is not there or no JSON."""
    try:
        return json.loads(place.read_text())
    except (OSError, ValueError):
        return None


def parsed(line: str) -> Any:
    """A line of history; None for one that a power cut tore."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def text(place: Path) -> str | None:
    """A file's text; None when it is not there."""
    try:
        return place.read_text()
    except OSError:
        return None


def command(*words: str) -> str:
    """What a command prints; nothing when it fails."""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def releases(home: Path) -> dict[str, Any]:
    """Every release that is kept: what it is made of, and since when it is here."""
    found = {}
    for place in sorted(home.glob("releases/*")):
        if not place.is_dir():
            continue
        known = document(place / "release.json") or {}
        gate = known.pop("gate", None) or {}
        has_door = gate.get("door") is not None
        found[place.name] = {**known, "at": place.stat().st_mtime, "door": has_door}
    return found


def health(address: str, port: int) -> dict[str, Any]:
    """What /health says: {"code", "seconds"}, or the error's words."""
    began = time.monotonic()
    connection = http.client.HTTPConnection(address, port, timeout=5)
    try:
        connection.request("GET", "/health")
        return {"code": connection.getresponse().status, "seconds": time.monotonic() - began}
    except (OSError, http.client.HTTPException) as error:
        return {"code": None, "said": str(error) or type(error).__name__}
    finally:
        connection.close()


def service(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """One service: links, releases, container, unit and, where it is planned, health."""
    name = home.name
    links = {
        link: (home / link).readlink().name if (home / link).is_symlink() else None
        for link in ("current", "good")
    }
    try:
        (container,) = json.loads(command("docker", "inspect", f"sparkwright-{name}"))
    except ValueError:
        container = None
    shown = command("systemctl", "show", "-p", _UNIT, f"sparkwright-{name}.service")
    found: dict[str, Any] = {
        **links,
        "releases": releases(home),
        "container": container
        and {
            "running": container["State"]["Running"],
            "started": container["State"]["StartedAt"],
            "release": (container["Config"]["Labels"] or {}).get("sparkwright.release"),
            "image": container["Config"]["Image"],
        },
        "unit": dict(line.split("=", 1) for line in shown.splitlines() if "=" in line),
        "health": health(*request["ports"][name]) if name in request["ports"] else None,
    }
    if request["texts"] and links["current"]:
        unit = Path("/etc/systemd/system", f"sparkwright-{name}.service")
        found["texts"] = {
            "compose.yaml": text(home / "current/compose.yaml"),
            unit.name: text(unit),
        }
    return found


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Tell it."""
    root = Path(request["services_root"])
    told = (text(root / "state/history.jsonl") or "").splitlines()
    journal = document(root / "state/switch/progress.json")
    watch = document(root / "state/watch.json")
    return {
        "now": time.time(),
        "lock": document(root / "state/lock.json"),
        "switch": journal and {key: journal.get(key) for key in ("step", "result", "reasons")},
        "watch": watch and {key: watch[key] for key in ("at", "findings")},
        "history": [entry for line in told if (entry := parsed(line)) is not None],
        "services": {
            home.name: service(home, request)
            for home in sorted(root.glob("services/*"))
            if (home / "current").is_symlink()
        },
    }
