"""systemd's own judgement of units that are not installed (systemd 250 or newer)."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sparkwright.host.lib import sandbox

#: Lines of every unit, with any value.
NAMES = {item.partition("=")[0] for item in sandbox.SET}


def settings(text: str) -> dict[str, list[str]]:
    """Settings of a unit's text, by name."""
    result: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, is_setting, value = line.partition("=")
        if is_setting and re.fullmatch(r"[A-Za-z]+", name):
            result.setdefault(name, []).append(value)
    return result


def exposure(folder: Path, name: str, text: str) -> float:
    """Exposure of a unit by `systemd-analyze security`, from 0 (no exposure) to 10."""
    message = _analyze("security", "--offline=true", "--no-pager", _written(folder, name, text))
    match = re.search(r"Overall exposure level for \S+: ([\d.]+)", message.stdout)
    assert match, message.stdout + message.stderr
    return float(match[1])


def faults(folder: Path, name: str, text: str) -> list[str]:
    """Faults of a unit by `systemd-analyze verify`; absent programs and units do not count."""
    message = _analyze("verify", "--man=no", "--recursive-errors=no", _written(folder, name, text))
    return [
        line
        for line in message.stderr.splitlines()
        if name in line and "is not executable" not in line and "not found" not in line
    ]


def job(description: str, argv: tuple[str, ...], properties: tuple[str, ...]) -> str:
    """A job's unit, as systemd-run makes it."""
    arguments = " ".join(f'"{word}"' for word in argv[:3])
    lines = ["[Unit]", f"Description={description}", "[Service]", f"ExecStart={arguments}"]
    return "\n".join([*lines, sandbox.lines(*properties), ""])


def _written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def _analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
