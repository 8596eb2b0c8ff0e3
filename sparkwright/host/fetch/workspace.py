"""What the steps of one run share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Event

from sparkwright.host.fetch.place import Ownership, Stage
from sparkwright.host.fetch.progress import Progress
from sparkwright.host.fetch.request import FetchRequest
from sparkwright.host.fetch.verified import Verified


@dataclass(frozen=True)
class Workspace:
    """A run's request, its directories, and where it counts and keeps what is done.

    Attributes:
        base: directory that gets the files: the destination itself where that exists already (a
            file was changed, or it was filled by other means), else the stage's.
        stop: set when the run ends.
    """

    request: FetchRequest
    stage: Stage
    base: Path
    owner: Ownership
    verified: Verified
    progress: Progress
    stop: Event

    @property
    def destination(self) -> Path:
        """The directory that is complete in the end."""
        return Path(self.request.destination)

    @property
    def repairs(self) -> bool:
        """Whether the destination exists already."""
        return self.base == self.destination
