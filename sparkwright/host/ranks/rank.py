"""Program of a rank of a service that several hosts run together. The rank's unit runs the program.

`run RELEASE` is the unit's main process: it starts the engine together with the other ranks'
engines, and ends with the first engine that ends. `close RELEASE` runs before the main process and
`open RELEASE` after it: both record that the rank has stopped; the first makes the rules of the
service's firewall, and the second removes the rules.
"""

import re
from pathlib import Path

from sparkwright.host import fabric, service_firewall
from sparkwright.host.lib import documents, files, ranks
from sparkwright.host.ranks import collective, follower, head, link, start
from sparkwright.host.service import Service

#: Values that Compose reads from a file unchanged.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/+-]*")


def write_environment(home: str, rank: ranks.RankConfig) -> None:
    """Write the engine's variables that depend on the rank's host, such as the cage of the cable.
    The rank's Compose file names the file with the variables; on a plain network this file does not
    exist.

    If the host finds no fabric, the planned variables are written, and the rank waits.
    """
    if rank.shape is None:
        return
    variables = dict(rank.environment)
    try:
        state = fabric.main(fabric.FabricRequest(ask=False))
        variables |= collective.collective_environment(state, rank.shape, ranks=len(rank.hosts))
    except (collective.NoFabric, OSError, ValueError) as error:
        print(f"the fabric is not as planned: {error}", flush=True)
    plain = sorted(name for name in variables if _PLAIN.fullmatch(variables[name]))
    text = "".join(f"{name}={variables[name]}\n" for name in plain)
    files.write(Path(home, ranks.FABRIC), text, 0o644)


def main(action: str, path: str) -> int:
    """Carry out an action of the unit. Returns the exit code, which is 0 for a run without a
    failure of this rank.
    """
    service = documents.record(Service, path)
    if service is None or service.rank is None:
        raise SystemExit(f"{path} can't be read")
    if action == "close":
        start.ended(service, service.rank)  # the host may have lost power while the engine ran
        write_environment(service.home, service.rank)
        service_firewall.write(service, closed=True)
    elif action == "open":
        start.ended(service, service.rank)
        service_firewall.write(service, closed=False)
    else:
        release = files.target(Path(service.home, "current")) or service.release
        role = follower.Follower if service.follower else head.Head
        return role(service, service.rank, link.key_of(service.rank_secrets), release).run()
    return 0
