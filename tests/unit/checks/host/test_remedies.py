"""A remedy that installs something names what its distribution has."""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.host.judge import judge
from sparkwright.checks.host.remedies import install, major
from sparkwright.host import observe
from sparkwright.host.lib import documents
from sparkwright.host.observe import Distribution
from tests.tables import Tables
from tests.unit.builders import plan, probe, wanted

cases = Tables(__file__)

DGX, UBUNTU = Distribution("ubuntu", "24.04", dgx=True), Distribution("ubuntu", "24.04")
BOOKWORM, TRIXIE = Distribution("debian", "12"), Distribution("debian", "13")
OTHER = Distribution("arch", "")
ABSENT = {"found": False, "code": None, "err": "", "out": ""}
#: Packages of no distribution but these.
OWN = {
    "docker-compose-v2": [UBUNTU],
    "nvidia-driver-580-open": [UBUNTU],
    "docker-cli": [TRIXIE],
    "docker.io": [UBUNTU, TRIXIE],
    "nvidia-open": [BOOKWORM, TRIXIE],
    "nv-docker-options": [DGX],
    "fwupdmgr": [DGX],
}


@pytest.mark.parametrize("on", [DGX, UBUNTU, BOOKWORM, TRIXIE, OTHER])
def test_no_remedy_names_what_is_not_there(on: Distribution) -> None:
    text = " ".join(
        install(name, on).replace("(where Docker is docker.io)", "")
        for name in ("docker", "compose", "toolkit", "driver")
    )
    assert {name for name in OWN if name in text} == {
        name for name, where in OWN.items() if on in where
    }
    assert ("add NVIDIA's repository" in text) == (on is not DGX)
    assert "https://docs.docker.com/engine/install/" in text


def test_every_finding_has_the_remedy_of_its_host() -> None:
    bare = {"gpu": ABSENT, "toolkit": ABSENT, "docker_found": False}
    seen = probe(**bare, distribution={"id": "debian", "version": "12"})
    result = {item.id: item.remedy for item in judge(wanted(plan()), seen, 1000.0)}
    assert result["docker"] == install("docker", BOOKWORM)
    assert result["nvidia-driver"] == install("driver", BOOKWORM)
    assert result["nvidia-container-toolkit"] == install("toolkit", BOOKWORM)


@cases("text", "expected")
def test_what_a_host_runs(
    text: str | None, expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "text", lambda _: text)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    seen = observe.distribution()
    assert [seen.id, seen.version, major(seen)] == expected
    assert not seen.dgx
