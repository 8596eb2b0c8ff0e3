"""A rank of a service that several hosts serve together, as its unit calls it.

`run CONFIG` is the unit's main process: it starts the engine together with those of the other
ranks, and ends with the first of them. `close CONFIG` and `open CONFIG` make the firewall's rules
and take them away.
"""

from __future__ import annotations

from pathlib import Path

from sparkwright.host.lib import documents, files
from sparkwright.host.lib.ranks import RankConfig
from sparkwright.host.ranks import environment, firewall
from sparkwright.host.ranks.engine import Board
from sparkwright.host.ranks.follower import Follower
from sparkwright.host.ranks.head import Head
from sparkwright.host.ranks.link import key_of


def main(action: str, place: str) -> int:
    """Do it; the exit code of a run is 0 where it is no failure of this rank."""
    config = documents.record(RankConfig, place)
    if config is None:
        raise SystemExit(f"{place} can't be read")
    if action == "close":
        Board.ended(config)  # it may have lost power as it was
        environment.write(config)
        firewall.close(config)
    elif action == "open":
        Board.ended(config)
        firewall.open_again(config)
    else:
        release = files.target(Path(config.home, "current")) or config.release
        role = Follower if config.number else Head
        return role(config, key_of(config.secrets), release).run()
    return 0
