"""Installing Docker, Compose, toolkit and driver on a host, by its distribution."""

from typing import Literal

from sparkwright.host.observe import Distribution
from sparkwright.text.shipped_yaml import beside


def install(name: Literal["docker", "compose", "toolkit", "driver"], on: Distribution) -> str:
    """The remedy that installs a program on this distribution."""
    texts: dict[str, str] = beside(__file__, "remedies.yaml")[name]
    exact = f"{on.kind}-{min(on.major, 13)}"
    return texts.get(exact) or texts.get(on.kind) or texts["other"]
