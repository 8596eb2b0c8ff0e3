"""Installation of Docker, Compose, toolkit and driver on a host, by its distribution."""

from typing import Literal

from sparkwright.host.observe import Distribution
from sparkwright.text.shipped_yaml import beside


def install(name: Literal["docker", "compose", "toolkit", "driver"], on: Distribution) -> str:
    """The remedy that installs a program on this distribution."""
    texts: dict[str, str] = beside(__file__, "remedies.yaml")[name]
    kind = "dgx" if on.dgx else on.id
    keys = [key for key in texts if key.partition("-")[0] == kind]
    fitting = [key for key in keys if int(key.partition("-")[2] or 0) <= major(on)]
    return texts[max(fitting, default="other")]


def major(on: Distribution) -> int:
    """Return the major version: ``24.04`` -> 24; 0 without a number."""
    first = on.version.partition(".")[0]
    return int(first) if first.isascii() and first.isdigit() and len(first) < 6 else 0
