"""A rank of a service that several hosts serve together, as its unit calls it.

`run RELEASE` is the unit's main process: it starts the engine together with the other ranks'
engines, and ends with the first of them. `close RELEASE` comes before it and `open RELEASE` after
it: neither leaves an engine behind, and they make and remove the rules of the service's firewall.
"""

from __future__ import annotations

import re
from pathlib import Path

from sparkwright.host import fabric, service_firewall
from sparkwright.host.fabric import FabricRequest
from sparkwright.host.lib import documents, files
from sparkwright.host.lib.ranks import FABRIC, RankConfig
from sparkwright.host.ranks.collective import NoFabric, collective_environment
from sparkwright.host.ranks.engine import ended
from sparkwright.host.ranks.follower import Follower
from sparkwright.host.ranks.head import Head
from sparkwright.host.ranks.link import key_of
from sparkwright.host.service import Service

#: What Compose takes out of a file as it stands there.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/+-]*")


def write_environment(home: str, rank: RankConfig) -> None:
    """Write the variables of a rank's engine that only its host knows: which cage the cable is in
    today. The rank's Compose file names the file; there is none for a plain network.

    Where nothing of the fabric is to be seen, what was planned is written: the rank waits then.
    """
    if rank.shape is None:
        return
    variables = dict(rank.environment)
    try:
        state = fabric.main(FabricRequest(ask=False))
        variables |= collective_environment(state, rank.shape, ranks=len(rank.hosts))
    except (NoFabric, OSError, ValueError) as error:
        print(f"the fabric is not as it is to be: {error}", flush=True)
    plain = sorted(name for name in variables if _PLAIN.fullmatch(variables[name]))
    text = "".join(f"{name}={variables[name]}\n" for name in plain)
    files.write(Path(home, FABRIC), text, 0o644)


def main(action: str, path: str) -> int:
    """Do it; the exit code of a run is 0 if it is no failure of this rank."""
    service = documents.record(Service, path)
    if service is None or service.rank is None:
        raise SystemExit(f"{path} can't be read")
    if action == "close":
        ended(service, service.rank)  # it may have lost power as it was
        write_environment(service.home, service.rank)
        service_firewall.write(service, closed=True)
    elif action == "open":
        ended(service, service.rank)
        service_firewall.write(service, closed=False)
    else:
        release = files.target(Path(service.home, "current")) or service.release
        role = Follower if service.follower else Head
        return role(service, service.rank, key_of(service.rank_secrets), release).run()
    return 0
