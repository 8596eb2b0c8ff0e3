"""The variables of a rank's engine that only its host knows: which cage the cable is in today."""

from __future__ import annotations

import re
from pathlib import Path

from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest
from sparkwright.host.lib import files
from sparkwright.host.lib.ranks import FABRIC, RankConfig
from sparkwright.host.ranks.collective import NoFabric, collective_environment

#: What Compose takes out of a file as it stands there.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/+-]*")


def write(config: RankConfig) -> None:
    """Write the file that the rank's Compose file names; nothing for a plain network.

    Where nothing of the fabric is to be seen, what was planned is written: the rank waits then.
    """
    if config.shape is None:
        return
    found = dict(config.environment)
    try:
        seen = fabric.main(FabricRequest(ask=False))
        found |= collective_environment(seen, config.shape, ranks=len(config.hosts))
    except (NoFabric, OSError, ValueError) as error:
        print(f"the fabric is not as it is to be: {error}", flush=True)
    text = "".join(
        f"{name}={value}\n" for name, value in sorted(found.items()) if _PLAIN.fullmatch(value)
    )
    files.write(Path(config.home, FABRIC), text, 0o644)
