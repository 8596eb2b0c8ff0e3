"""Keep the compiled files of an engine's first start for later starts. A service's unit runs it.

    python3 -IS boot_caches.py before HOME            (ExecStartPre)
    python3 -IS boot_caches.py after HOME SECONDS MARK     (ExecStopPost)

Compiled code belongs to one image, GPU and driver: each combination has a directory of its own,
and HOME/caches/current points to the directory of this start. If a start fails before it serves,
its cache is set aside and the next start runs without it. If that start fails too, the cache was
not the cause and is restored; otherwise the newly compiled files replace it. A start has served
once MARK (written by the health program) or HOME/boot.json (written by a deploy) is newer than the
start itself. Without this check, an engine on an H200 that was killed 12 s after it served compiled
everything again (126 s instead of 38 s).

The file is copied next to a release, so it imports no other sparkwright module.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    from typing import Any

_QUERY = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")


def gpus() -> str:
    """Return the GPUs and the driver version as nvidia-smi prints them; empty if it does not
    answer.
    """
    try:
        done = subprocess.run(_QUERY, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


class Caches:
    """The caches of one service."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._root = home / "caches"
        self._state = self._root / "state.json"

    def before(self, hardware: str) -> Path:
        """Prepare the caches for a start of the current release, and return their directory."""
        path = (self._home / "current").resolve()
        release, image = path.name, _image(path / "release.json") or ""
        self._root.mkdir(mode=0o700, exist_ok=True)
        self._root.chmod(0o700)
        os.chown(self._root, os.geteuid(), os.getegid())
        key = _key(image, hardware)
        state = self._known()
        cache, suspect = self._root / key, self._root / f"{key}.suspect"
        if suspect.is_dir() and state.get("release") != release:
            self._settle(cache, suspect, booted=True)
        self._prune(key, hardware)
        cache.mkdir(mode=0o700, exist_ok=True)
        self._write(
            {
                "key": key, "release": release, "started": time.time(),
                "warm": any(cache.iterdir()),
                "cleared": state.get("cleared") if state.get("release") == release else False,
            }
        )  # fmt: skip
        link = self._root / ".current"
        link.unlink(missing_ok=True)
        link.symlink_to(key)
        link.replace(self._root / "current")
        return cache

    def after(self, seconds: float, well: bool, mark: Path) -> None:
        """Record the end of a start, and keep or set aside its cache.

        Args:
            seconds: longest first boot; a start that fails later has served.
            well: whether the service was stopped on request.
            mark: file that the health program touches whenever the service begins to serve.
        """
        if not (state := self._known()):
            return
        cache = self._root / state["key"]
        suspect = self._root / f"{state['key']}.suspect"
        marks = [path.stat().st_mtime for path in (mark, self._home / "boot.json") if path.exists()]
        served = max(marks, default=0) > state["started"]
        booted = served or time.time() - state["started"] >= seconds
        if booted or well:
            if suspect.is_dir():
                self._settle(cache, suspect, booted=booted)
        elif suspect.is_dir():
            self._restore(cache, suspect)
            self._write({**state, "cleared": True})
        elif not state["warm"]:
            shutil.rmtree(cache, ignore_errors=True)  # an incomplete cache
        elif not state.get("cleared"):
            cache.replace(suspect)

    def _settle(self, cache: Path, suspect: Path, *, booted: bool) -> None:
        """Decide about a cache that was set aside, if no start has failed without it: the new cache
        of a start that was stopped while booting is incomplete.
        """
        if booted and cache.is_dir() and any(cache.iterdir()):
            shutil.rmtree(suspect, ignore_errors=True)
        else:
            self._restore(cache, suspect)

    def _restore(self, cache: Path, suspect: Path) -> None:
        shutil.rmtree(cache, ignore_errors=True)
        suspect.replace(cache)

    def _prune(self, key: str, hardware: str) -> None:
        """Remove caches that belong to no kept release's image, or to another GPU or driver."""
        images = map(_image, self._home.glob("releases/*/release.json"))
        keys = {key, *(_key(image, hardware) for image in images if image)}
        for path in self._root.iterdir():
            if path.is_dir() and not path.is_symlink() and path.name.partition(".")[0] not in keys:
                shutil.rmtree(path, ignore_errors=True)

    def _known(self) -> dict[str, Any]:
        try:
            data = json.loads(self._state.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) and {"key", "started", "warm"} <= set(data) else {}

    def _write(self, state: dict[str, Any]) -> None:
        beside = self._state.with_suffix(".new")
        beside.write_text(json.dumps(state), encoding="utf-8")
        beside.replace(self._state)


def _key(image: str, hardware: str) -> str:
    """Return the cache's name for an image, a GPU and its driver."""
    return hashlib.sha256(f"{image}\0{hardware}".encode()).hexdigest()[:12]


def _image(note: Path) -> str | None:
    """Return the image of a release from its release.json; None if the file does not name it."""
    try:
        return str(json.loads(note.read_text(encoding="utf-8"))["image"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def main(arguments: list[str]) -> None:
    """Run the command that the unit names."""
    caches = Caches(Path(arguments[1]))
    if arguments[0] == "before":
        caches.before(gpus())
    else:
        well = os.environ.get("SERVICE_RESULT", "success") == "success"
        caches.after(float(arguments[2]), well, Path(arguments[3]))


if __name__ == "__main__":
    main(sys.argv[1:])
