"""Tags of the lab for roll-outs: a good one, and those that fail in their own way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.fleet.site import Site

NEW = '"2026-06-18-v0.23.0-dflashfix"'
FAULTS = """\
kind: image
name: aeon-vllm-ultimate
extends: true
tags:
  lab-never-healthy: &lab
    {date: 2026-07-02, vllm: 0.24.0, architectures: [arm64, amd64], source: the lab}
  lab-wedge: *lab
  lab-crash: *lab
  lab-oom: *lab
  lab-garbage: *lab
"""
#: Short deadlines, so that what never answers is known soon.
DEADLINES = '"port": 8000, "boot_seconds": 12, "first_answer_seconds": 6,'


@contextmanager
def rolling_fleet(site: Site, **settings: object) -> Iterator[Site]:
    """The fleet on the newest tag, with short deadlines and the bad tags in the catalog."""
    site.power_on()
    site.repair()
    for group in ("sparks", "rtx50"):
        site.edit(f"group_data/{group}.py", '"port": 8000,', DEADLINES)
    (site.folder / "lab/catalog/faults.yaml").write_text(FAULTS)
    if settings:
        site.rollout(**settings)
    site.deploy(refused={"hopper-1"})
    yield site
    site.power_on()
    (site.folder / "lab/catalog/faults.yaml").unlink()
    site.repair()
