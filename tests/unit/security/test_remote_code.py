"""Python of a model's repository: run only if it is pinned, and named by a user who has read it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.config.inventory import HostInput
from sparkwright.findings.finding import Finding, Severity
from sparkwright.plan.service import render_service
from sparkwright.resolve.hub import PinnedFile, ResolvedModel
from sparkwright.resolve.lock import Resolution
from sparkwright.resolve.pickles import fetched
from sparkwright.site.fleet import PlannedHost, plan_fleet
from sparkwright.site.resolution import with_geometry
from tests.unit.builders import COMMIT, alone, origin, plan, resolution

BODY, DRAFTER = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4", "z-lab/Qwen3.6-35B-A3B-DFlash"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """Path of the host's lock file, after it is written."""
    return tmp_path / "fleet.lock"


def planned(lock: Path, *, trusting: bool = True, **data: Any) -> dict[str, PlannedHost]:
    """A host whose service runs a repository's code, or does not."""
    arguments = {"arguments": {"trust_remote_code": True}} if trusting else {}
    services = {"s": {"recipe": "qwen36-35b-a3b-heretic-dflash", **arguments}}
    host = HostInput("spark-1", {"services": services, "lock_file": str(lock), **data}, origin)
    return plan_fleet([host]).or_raise()


def judged(hosts: dict[str, PlannedHost], **files: list[str]) -> list[Finding]:
    """Findings once the commits' files are known: ``body`` and ``drafter`` have these files."""
    (host,) = hosts.values()
    expected = resolution(host.plan)
    models = {}
    for key, model in expected.models.items():
        names = files.get("body" if model.repository == BODY else "drafter", [])
        more = dict.fromkeys(names, PinnedFile(1, None, COMMIT))
        models[key] = replace(model, files={**model.files, **more})
    (host,) = with_geometry(hosts, Resolution(images=expected.images, models=models)).values()
    return [violation for violation in host.violations if violation.id == "remote-code"]


def test_without_a_lock_remote_code_is_refused_before_any_request(lock: Path) -> None:
    (host,) = planned(lock).values()
    (result,) = [violation for violation in host.violations if violation.id == "remote-code"]
    assert result.severity is Severity.ERROR
    assert "without a lock" in result.observed
    assert "sparkwright lock" in result.remedy
    assert [item.severity for item in judged(planned(lock), body=["x.py"])] == [Severity.ERROR]


def test_unnamed_python_files_are_refused_by_name(lock: Path) -> None:
    lock.touch()
    (result,) = judged(planned(lock), drafter=["dflash.py", "deep/utils.py"])
    assert result.severity is Severity.ERROR
    assert f"{DRAFTER} has Python files that its catalog entry does not name" in result.observed
    assert "dflash.py" in result.observed
    assert "deep/utils.py" in result.observed


def test_code_named_in_the_catalog_may_run(lock: Path, tmp_path: Path) -> None:
    lock.touch()
    own = tmp_path / "my-catalog"
    own.mkdir()
    entry = {"kind": "model", "name": "qwen36-35b-a3b-dflash", "extends": True,
             "code": ["dflash.py"]}  # fmt: skip
    (own / "read.yaml").write_text(yaml.safe_dump(entry))
    hosts = planned(lock, catalog_directories=(str(own),))
    assert judged(hosts, drafter=["dflash.py"]) == []
    # The fetch includes the code that runs, and no other file.
    (_, reference) = hosts["spark-1"].plan.references.models
    files = dict.fromkeys(("dflash.py", "sitecustomize.py"), PinnedFile(1, None, COMMIT))
    model = fetched(ResolvedModel(DRAFTER, COMMIT, None, files), reference.code)
    assert set(model.files) == {"dflash.py"}
    (result,) = judged(hosts, drafter=["dflash.py", "new.py"])
    assert "new.py" in result.observed
    assert "dflash.py" not in result.observed


def test_a_repository_without_code_does_not_need_trust_remote_code(lock: Path) -> None:
    lock.touch()
    (result,) = judged(planned(lock))
    assert result.severity is Severity.WARNING
    assert "none of its locked repositories has Python files" in result.observed


def test_a_recipe_that_runs_no_code_has_no_finding(lock: Path) -> None:
    assert judged(planned(lock, trusting=False), body=["gemma4_patched.py"]) == []


@pytest.mark.parametrize("recipe", sorted(alone()))
def test_no_recipe_runs_a_repositorys_code(recipe: str) -> None:
    host = plan({"s": {"recipe": recipe}})
    (service,) = host.services
    assert "trust_remote_code" not in dict(service.arguments)
    text = render_service(host, service, resolution(host)).compose
    # An entry point that trusts remote code by default gets a flag that forbids remote code.
    assert ("--no-trust-remote-code" in text) == (service.variables is not None)
    assert '"--trust-remote-code"' not in text
