"""Tags of the lab for roll-outs: a good tag, and tags that fail in different ways."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.fleet.site import Site

NEW = '"2026-06-18-v0.23.0-dflashfix"'
#: These tags join the lab's entry of the image: a catalog has one entry of each name.
IMAGE = "lab/catalog/aeon-vllm-ultimate.yaml"
FAULTS = """\
  lab-never-healthy: &lab
    {date: 2026-08-17, version: 0.24.0, architectures: [arm64, amd64], source: the lab}
  lab-wedge: *lab
  lab-crash: *lab
  lab-oom: *lab
  lab-garbage: *lab
"""
#: Short deadlines reveal a missing answer soon.
DEADLINES = '"port": 8000, "boot_seconds": 12, "first_answer_seconds": 6,'


def add_faults(site: Site) -> None:
    """Put the bad tags into the catalog; ``site.restore(IMAGE)`` takes them out."""
    with (site.folder / IMAGE).open("a", encoding="utf-8") as file:
        file.write(FAULTS)


@contextmanager
def rolling_fleet(site: Site, **settings: object) -> Iterator[Site]:
    """The fleet on the newest tag, with short deadlines and the bad tags in the catalog."""
    site.power_on()
    site.repair()
    for group in ("sparks", "rtx50"):
        site.edit(f"group_data/{group}.py", '"port": 8000,', DEADLINES)
    add_faults(site)
    if settings:
        site.rollout(**settings)
    site.deploy(refused={"hopper-1"})
    yield site
    site.power_on()
    site.restore(IMAGE)
    site.repair()
