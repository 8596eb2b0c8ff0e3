"""Caches of a site: a run that may change something writes them; one that only looks reads them."""

from pathlib import Path
from threading import Event

FOLDER = Path(".sparkwright/cache")
#: Set by a run that may change something.
WRITTEN = Event()
