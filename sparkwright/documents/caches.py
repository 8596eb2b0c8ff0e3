"""Caches of a site: only runs that can change something write the caches; other runs read them."""

import os
from pathlib import Path
from threading import Event

FOLDER = Path(".sparkwright/cache")
#: Event that a run sets if it may change something.
WRITTEN = Event()


def of_user(name: str) -> Path:
    """Return a user's folder for all sites: compiled templates and git's settings are code, and a
    site may be another user's checkout.
    """
    root = os.environ.get("XDG_CACHE_HOME") or f"{os.environ.get('HOME', '')}/.cache"
    return Path(root, "sparkwright", name)
