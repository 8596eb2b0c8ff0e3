"""One run at a time on this host. Runs on the host as root (roles/remote.py).

The lock is a file that names its owner, so that others can be told. It is made whole and in one
step (a hard link), and taken from a dead owner only by naming that owner's lock.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

HELD, LAST = "lock.json", "lock-last.json"


def read(place: Path) -> dict[str, Any] | None:
    """Who holds, or held last; None for nobody."""
    try:
        return dict(json.loads(place.read_text()))
    except (OSError, ValueError):
        return None


def take(
    state: Path, owner: dict[str, Any], *, breaking: bool, instead_of: str | None
) -> dict[str, Any]:
    """{"held": whether it is ours now, "by": its owner otherwise, "last": who had it before}."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    held = state / HELD
    holder = read(held)
    # A lock that a power cut left empty has no token, and is broken by None.
    if breaking and (holder or {}).get("token") == instead_of:
        held.unlink(missing_ok=True)
    new = state / f".{owner['token']}"
    with new.open("w") as file:
        file.write(json.dumps({**owner, "since": time.time()}))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(new, held)
    except FileExistsError:
        holder = read(held) or {"token": None, "by": "somebody", "since": time.time()}
        return {"held": holder["token"] == owner["token"], "by": holder, "now": time.time()}
    finally:
        new.unlink(missing_ok=True)
    return {"held": True, "last": (read(state / LAST) or {}).get("token")}


def give(state: Path, token: str) -> dict[str, Any]:
    """Let others run; the lock stays as the mark of who was here last."""
    holder = read(state / HELD)
    if holder and holder["token"] == token:
        with contextlib.suppress(OSError):
            (state / HELD).replace(state / LAST)
    return {"held": False}


def main(request: dict[str, Any]) -> dict[str, Any]:
    """``{"state": directory, "take": owner, "instead_of": token}``, or ``"give": token``."""
    state = Path(request["state"])
    if "give" in request:
        return give(state, request["give"])
    return take(
        state,
        request["take"],
        breaking="instead_of" in request,
        instead_of=request.get("instead_of"),
    )
