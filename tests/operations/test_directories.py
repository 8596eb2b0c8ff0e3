"""Directories: made, set right, or as desired. All in one execution."""

from __future__ import annotations

import pytest

from sparkwright.host.directories import DirectoriesRequest, Directory
from sparkwright.host.observation import ObservationRequest
from sparkwright.operations import directories
from tests.operations.harness import Case, Said, check, fake, run
from tests.unit.builders import probe

MODELS, STATE = Directory("/opt/models"), Directory("/opt/sparkwright/state", 0o700)
WANTED = {"directories": [MODELS, STATE]}
ASKED = ObservationRequest(directories=(MODELS.path, STATE.path))
GOOD = {"mode": 0o755, "uid": 0}
PRIVATE = {"mode": 0o700, "uid": 0}


def _found(models: object, state: object) -> dict[str, object]:
    return {"directories": {MODELS.path: models, STATE.path: state}}


def _asks(*todo: Directory) -> tuple[tuple[str, object], ...]:
    return (("directories", DirectoriesRequest(todo)),)


@pytest.mark.parametrize(
    "case",
    [
        Case("as desired", _found(GOOD, PRIVATE), WANTED, noop="2 directories are as desired"),
        Case(
            "nothing there", _found(None, None), WANTED, asks=_asks(MODELS, STATE),
            would=("make /opt/models", "make /opt/sparkwright/state"),
        ),
        Case(
            "another mode", _found(GOOD, GOOD), WANTED, asks=_asks(STATE),
            would=("set mode and owner of /opt/sparkwright/state",),
        ),
        Case(
            "another owner", _found({**GOOD, "uid": 1000}, PRIVATE), WANTED, asks=_asks(MODELS),
            would=("set mode and owner of /opt/models",),
        ),
        Case(
            "a file of that name", _found({**GOOD, "is_directory": False}, PRIVATE), WANTED,
            asks=_asks(MODELS), would=("set mode and owner of /opt/models",),
        ),
        Case(
            "somebody else's", _found({"mode": 0o777, "uid": 1000}, PRIVATE),
            {**WANTED, "existing_are_fine": ["/opt/models"]}, noop="2 directories are as desired",
        ),
        Case(
            "that of somebody else is not there", _found(None, PRIVATE),
            {**WANTED, "existing_are_fine": ["/opt/models"]}, asks=_asks(MODELS),
            would=("make /opt/models",),
        ),
    ],
    ids=str,
)  # fmt: skip
def test_present(case: Case) -> None:
    answered = Case(**{**vars(case), "answers": {"directories": None}})
    check(directories.present, answered, probe(**case.seen), ASKED)


def test_made_directories_are_not_made_again_in_the_same_run() -> None:
    host = fake(probe(**_found(None, None)), ASKED, directories=None)
    run(host, directories.present, **WANTED, execute=True)
    host.answers["observe"] = probe(**_found(GOOD, PRIVATE), lock=None)
    run(host, directories.present, **WANTED, execute=True)
    assert host.programs == ["lock", "directories", "observe"]
    assert host.noops == ["2 directories are as desired"]


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


def test_a_host_that_does_not_answer_fails_alone_and_by_name() -> None:
    host = fake(probe(**_found(None, None)), ASKED, directories=Said("Welcome!", bare=True))
    ran = run(host, directories.present, **WANTED, execute=True)
    assert not ran.well
    assert ran.memory.failure == (
        "sparkwright-directories: no answer: the host's login ends before the program, or runs "
        "another one instead (check .bashrc and /etc/profile.d)"
    )
    assert ran.memory.changes == []
