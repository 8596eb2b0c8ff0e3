"""Makes directories with mode and owner. Runs on the host as root (see roles/remote.py)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def main(request: dict[str, Any]) -> None:
    """``{"directories": {path: "mode uid"}}``, parents first. Running it twice changes nothing."""
    for path, wanted in request["directories"].items():
        mode, uid = wanted.split()
        place = Path(path)
        if place.is_symlink() and not place.exists():
            raise SystemExit(f"{path} is a link that leads nowhere: remove it or mend its target")
        if place.exists() and not place.is_dir():
            raise SystemExit(f"{path} is not a directory: move it away")
        place.mkdir(parents=True, exist_ok=True)
        os.chown(place, int(uid), int(uid))
        place.chmod(int(mode, 8))
