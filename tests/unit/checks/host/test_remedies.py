"""A remedy that installs something names what its distribution has."""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.host.judge import judge
from sparkwright.checks.host.remedies import install, major
from sparkwright.host import observe
from sparkwright.host.lib import documents
from sparkwright.host.observe import Distribution
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import ROOT, plan, probe, wanted

cases = Tables(__file__)

DGX, UBUNTU = Distribution("ubuntu", "24.04", dgx=True), Distribution("ubuntu", "24.04")
BOOKWORM, TRIXIE = Distribution("debian", "12"), Distribution("debian", "13")
FEDORA, RESOLUTE = Distribution("fedora", "43"), Distribution("ubuntu", "26.04")
OTHER = Distribution("arch", "")
ABSENT = {"installed": False, "code": None, "err": "", "out": ""}
#: Packages of no distribution but these.
OWN = {
    "docker-compose-v2": [UBUNTU, RESOLUTE],
    "nvidia-driver-580-open": [UBUNTU, RESOLUTE],
    "linux-modules-nvidia-580-open": [RESOLUTE],
    "moby-engine": [FEDORA],
    "akmod-nvidia": [FEDORA],
    "docker-cli": [TRIXIE],
    "docker.io": [UBUNTU, RESOLUTE, TRIXIE],
    "nvidia-open": [BOOKWORM, TRIXIE],
    "nv-docker-options": [DGX],
    "fwupdmgr": [DGX],
}


@pytest.mark.parametrize("on", [DGX, UBUNTU, RESOLUTE, FEDORA, BOOKWORM, TRIXIE, OTHER])
def test_no_remedy_names_what_is_not_there(on: Distribution) -> None:
    text = " ".join(
        install(name, on)
        .replace("(where Docker is docker.io)", "")
        .replace("(where Docker is moby-engine)", "")
        for name in ("docker", "compose", "toolkit", "driver")
    )
    assert {name for name in OWN if name in text} == {
        name for name, where in OWN.items() if on in where
    }
    assert ("add NVIDIA's repository" in text) == (on is not DGX)
    assert "https://docs.docker.com/engine/install/" in text
    assert ("dnf" in text, "apt" in text) == (on is FEDORA, on is not FEDORA)


@cases("module", "check", "present", "absent")
def test_a_remedy_helps_with_its_fault(module: str, check: str, present: str, absent: str) -> None:
    """Available memory counts the page cache already; CUDA's free memory on a GB10 does not."""
    texts = safe_load((ROOT / "sparkwright" / module).read_text())
    remedies = [texts[check], *texts[check].get("cases", {}).values()]
    text = " ".join(entry["remedy"] for entry in remedies)
    assert present in text
    assert absent not in text


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
