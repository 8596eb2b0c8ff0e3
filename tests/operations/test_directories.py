"""Directories: made, set right, or as desired. All in one execution."""

from __future__ import annotations

from sparkwright.host.directories import Directory
from sparkwright.host.observation import ObservationRequest
from sparkwright.operations import directories
from tests.operations.harness import fake, run
from tests.unit.builders import probe

MODELS, STATE = Directory("/opt/models"), Directory("/opt/sparkwright/state", 0o700)
WANTED = {"directories": [MODELS, STATE]}
ASKED = ObservationRequest(directories=(MODELS.path, STATE.path))
GOOD = {"mode": 0o755, "uid": 0}
PRIVATE = {"mode": 0o700, "uid": 0}


def test_the_lock_of_another_place_is_no_change_of_this_one() -> None:
    """The lock below another services_root was last held by another run: its own, of yesterday."""
    request = ObservationRequest(services_root="/srv/sw", directories=("/srv/sw",))
    host = fake(probe(), directories=None)
    host.answers["observe"] = probe(directories={"/srv/sw": None}, last_lock="yesterday")
    host.answers["lock"] = {"held": True, "last": "yesterday"}
    wanted = [Directory("/srv/sw")]
    host.memory.services_root = "/srv/sw"
    ran = run(host, directories.present, wanted, execute=True)
    assert host.request("observe")["services_root"] == request.services_root
    assert host.request("lock")["state"] == "/srv/sw/state"
    assert ran.well, host.lines
