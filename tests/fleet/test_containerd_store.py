"""A deploy, an answer and pruning with the newest Docker and containerd's image store."""

import json
from collections.abc import Iterator

import pytest

from lab.layout import SPARES
from tests.fleet.site import Site, answers, inside
from tests.fleet.spares import as_installed

(NEW,) = (spare for spare in SPARES if spare.newest)
INVENTORY = "inventory/newdocker.py"


@pytest.fixture
def fresh(site: Site) -> Iterator[Site]:
    """Freshly installed host."""
    with as_installed(site, NEW, INVENTORY):
        yield site


def _images() -> list[str]:
    listed = inside(NEW.name, "docker", "image", "ls", "--format", "{{json .}}")
    return [json.loads(line)["Repository"] for line in listed.splitlines()]


@pytest.mark.timeout(600)
def test_an_image_with_provenance_is_pulled_served_and_removed(fresh: Site) -> None:
    version = inside(NEW.name, "docker", "version", "--format", "{{.Server.Version}}")
    assert int(version.split(".")[0]) >= 28
    driver = inside(NEW.name, "docker", "info", "--format", "{{.DriverStatus}}")
    assert "io.containerd.snapshotter.v1" in driver
    run = fresh.run("--yes", inventory=INVENTORY)
    assert run.code == 0, run.output
    assert answers(fresh, NEW.name)
    assert len(_images()) == 1
    again = fresh.run("--yes", inventory=INVENTORY)
    assert again.changed == set(), again.output
    fresh.sparkwright("remove", INVENTORY, "--weights", "--yes")
    assert _images() == []
