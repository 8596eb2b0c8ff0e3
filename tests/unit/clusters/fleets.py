"""Planned fleets with a cluster, from the lab's recipe for two ranks or a recipe for more ranks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkwright.config.inventory import HostInput
from sparkwright.plan.desired import Desired
from sparkwright.plan.service import render_service
from sparkwright.site.fleet import Fleet, plan_fleet
from tests.unit.builders import ROOT, origin, resolution

RECIPE = "lab-tiny-qwen3-2-ranks"
SERVICE = {"recipe": RECIPE, "cluster": "pair", "port": 8010}


def names(count: int) -> list[str]:
    """The hosts of a cluster."""
    return [f"spark-{number + 1}" for number in range(count)]


def cluster(count: int = 2, **changes: Any) -> dict[str, Any]:
    """A cluster on a plain network."""
    return {
        "hosts": names(count),
        "fabric": "network",
        "interface": "host0",
        "addresses": {name: f"10.0.0.{11 + n}" for n, name in enumerate(names(count))},
        **changes,
    }


def data(count: int = 2, **changes: Any) -> dict[str, Any]:
    """Settings of each host in group_data."""
    return {
        "services": {"chat": dict(SERVICE)},
        "clusters": {"pair": cluster(count)},
        "catalog_directories": (str(ROOT / "lab/catalog"),),
        **changes,
    }


def of_ranks(folder: Path, **ranks: int) -> dict[str, Any]:
    """A cluster with another number of ranks, from a user's own recipe."""
    count = ranks.get("tensor", 1) * ranks.get("pipeline", 1)
    message = ", ".join(f"{name}: {size}" for name, size in ranks.items())
    text = f"kind: recipe\nname: many\nextends: {RECIPE}\nranks: {{tensor: 1, {message}}}\n"
    (folder / "many.yaml").write_text(text.replace("tensor: 1, tensor", "tensor"))
    return data(
        count,
        services={"chat": {**SERVICE, "recipe": "many"}},
        catalog_directories=(str(ROOT / "lab/catalog"), str(folder)),
    )


def planned(hosts: Mapping[str, Mapping[str, Any]]) -> Fleet:
    """The plan of these hosts, by their data."""
    return plan_fleet([HostInput(name, its, origin) for name, its in hosts.items()])


def desired(hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, Desired]:
    """Desired state of these hosts."""
    desireds = {}
    for name, host in planned(hosts).or_raise().items():
        resolved = resolution(host.plan, architectures=("amd64", "arm64"))
        releases = tuple(
            render_service(host.plan, service, resolved) for service in host.plan.services
        )
        desireds[name] = Desired(host.plan, host.catalog, resolved, releases)
    return desireds


def pair(count: int = 2, **changes: Any) -> dict[str, Desired]:
    """A cluster's hosts."""
    return desired(dict.fromkeys(names(count), data(count, **changes)))
