"""Takes sparkwright's services off this host. Runs on the host as root (roles/remote.py).

Request: {"models_root", "services_root", "services": names, or null for everything, "weights":
whether the models go too}. Answer: {"done": [words], "left": [words]}. With everything, the host
is as it was found: containers that a switch had taken over are started again.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from sparkwright.host import disk_usage as holdings
from sparkwright.host.lib import receipt

_UNITS = Path("/etc/systemd/system")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


def command(*words: str) -> str:
    """What a command prints; nothing when it fails."""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def stop(units: list[str]) -> None:
    """Stop units and take their files away."""
    if units:
        command("systemctl", "disable", "--quiet", "--now", *units)
        for unit in units:
            (_UNITS / unit).unlink(missing_ok=True)
        command("systemctl", "daemon-reload")
        command("systemctl", "reset-failed", *units)


def strangers(services_root: Path) -> list[str]:
    """``name policy`` of containers that were taken over, by the history."""
    try:
        lines = (services_root / "state/history.jsonl").read_text().splitlines()
    except OSError:
        return []
    found: dict[str, str] = {}
    for line in lines:
        try:
            taken = json.loads(line).get("strangers", [])
        except ValueError:  # torn by a power cut, or empty
            continue
        found.update({one.partition(" ")[0]: one for one in taken})
    return list(found.values())


def weights(root: Path) -> tuple[list[str], list[str]]:
    """Remove the models that sparkwright fetched. Returns those, and what stays."""
    done, left = [], []
    for place in sorted(root.glob("*/*")):
        if holdings.REVISION.fullmatch(place.name) and receipt.read(str(place)):
            shutil.rmtree(place)
            done.append(f"model {place.parent.name}@{place.name[:12]}")
        elif place.name.startswith(".staging-"):
            shutil.rmtree(place)
        else:
            left.append(str(place))
    for folder in [*root.glob("*"), root]:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return done, left


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Remove, and say what."""
    root = Path(request["services_root"])
    done: list[str] = []
    left: list[str] = []
    chosen = request["services"]
    if chosen is not None:
        for name in chosen:
            if not _NAME.fullmatch(name) or not (root / "services" / name).is_dir():
                left.append(f"service {name!r}: there is none")
                continue
            stop([f"sparkwright-{name}.service"])
            shutil.rmtree(root / "services" / name, ignore_errors=True)
            done.append(f"service {name}")
        return {"done": done, "left": left}
    back = strangers(root)
    units = sorted(path.name for path in _UNITS.glob("sparkwright-*.*") if path.is_file())
    done += [f"unit {unit}" for unit in units]
    command("systemctl", "stop", "sparkwright-switch.service", "sparkwright-fetch*")
    command("systemctl", "stop", "sparkwright-pull*", "sparkwright-share*")
    stop(units)
    for image in holdings.our_images():
        command("docker", "image", "rm", "--force", image)
        done.append(f"image {image.rpartition(':')[0]}")
    if root.is_dir():
        shutil.rmtree(root)
        done.append(str(root))
    models = Path(request["models_root"])
    if request["weights"] and models.is_dir():
        gone, stays = weights(models)
        done += gone
        left += [f"{path}: not sparkwright's" for path in stays]
    elif models.is_dir():
        left.append(f"{models}: the models (--weights removes them)")
    for one in back:
        name, _, policy = one.partition(" ")
        command("docker", "update", f"--restart={policy or 'no'}", name)
        command("docker", "start", name)
        done.append(f"container {name} is started again")
    return {"done": done, "left": left}
