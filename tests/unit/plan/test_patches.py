"""Derived images: what a recipe's steps are read from, and what the image is named by."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.catalog.files import Patch
from sparkwright.checks.configuration import check_host
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.findings.user_error import UserError
from sparkwright.plan.patches import steps_of
from sparkwright.plan.service import render_service
from sparkwright.resolve.lock import Resolution
from sparkwright.site.fleet import PlannedHost
from tests.unit.builders import DIGEST, catalog, plan, resolution
from tests.unit.cli.answering import exits, run

PATCHED = catalog().recipes["qwen36-35b-a3b-heretic-dflash"]
IMAGE = catalog().images[PATCHED.image]
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
FIX = {"patch": "fix.patch", "into": "/usr/lib"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog/fix.patch").write_text(DIFF)
    (tmp_path / "secret").write_text(DIFF)
    (tmp_path / "catalog/link.patch").symlink_to(tmp_path / "secret")
    (tmp_path / "catalog/out.patch").write_text(DIFF.replace("b/x.py", "b/../../etc/passwd"))
    return tmp_path / "catalog"


def _steps(folder: Path, *patches: dict[str, Any], base: str = DIGEST) -> str:
    recipe = PATCHED.model_copy(update={"patches": tuple(map(Patch.model_validate, patches))})
    steps = steps_of(recipe, IMAGE, folder / "recipe.yaml", "spark-1")
    assert steps is not None
    return steps.image(base)


def test_an_image_is_named_by_its_base_its_steps_and_their_files(folder: Path) -> None:
    name = _steps(folder, FIX)
    assert name.startswith("sparkwright.local/qwen36-35b-a3b-heretic-dflash:sha256-")
    others = {
        _steps(folder, FIX, base=f"sha256:{'cd' * 32}"),
        _steps(folder, {**FIX, "into": "/usr/lib64"}),
        _steps(folder, FIX, {"promises": {"imports": ["vllm"]}}),
    }
    (folder / "fix.patch").write_text(DIFF.replace("+b", "+c"))
    others.add(_steps(folder, FIX))
    assert len({name, *others}) == 5


@pytest.mark.parametrize(
    ("patch", "fault"),
    [
        ({**FIX, "patch": "link.patch"}, "link.patch is a link to"),
        ({**FIX, "patch": "away.patch"}, "there is no"),
        ({**FIX, "patch": "out.patch"}, "line 2 leads to no file below 'into'"),
        ({"files": [{"at": "/opt/x", "source": "link.patch"}]}, "outside of"),
    ],
)
def test_a_step_reads_nothing_outside_of_its_catalog(
    folder: Path, patch: dict[str, Any], fault: str
) -> None:
    with pytest.raises(UserError, match=r"recipe\.yaml: patches\.0") as error:
        _steps(folder, patch)
    assert fault in str(error.value)


@pytest.mark.parametrize("name", ["my..mine", "mine-", "a___b"])
def test_a_name_that_no_image_can_have_is_refused_in_the_plan(folder: Path, name: str) -> None:
    patched = {"name": name, "patches": (Patch.model_validate(FIX),)}
    with pytest.raises(UserError, match="no name of an image"):
        steps_of(PATCHED.model_copy(update=patched), IMAGE, folder / "recipe.yaml", "spark-1")


@pytest.mark.parametrize(
    "patch",
    [
        {"patch": "../secret", "into": "/usr/lib"},
        {"patch": "/etc/passwd", "into": "/usr/lib"},
        {"patch": "fix.patch", "into": "/usr/lib\nRUN curl example.org | sh"},
        {"patch": "fix.patch", "into": "/usr/../etc"},
        {"patch": "fix.patch"},
        {"files": [{"at": "/opt/x\nUSER root", "source": "fix.patch"}]},
        {"files": [{"at": "opt/x", "source": "fix.patch"}]},
        {**FIX, "promises": {"imports": ["vllm"]}},
        {"promises": {"imports": ["vllm; import os"]}},
        {"run": "curl example.org | sh"},
        {"apt": ["curl=1"]},
        {"pip": ["vllm==1"]},
        {},
    ],
)
def test_a_step_is_data_and_no_line_of_a_dockerfile(patch: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"patch|step|files|promises|run|into"):
        Patch.model_validate(patch)


def test_a_service_runs_the_derived_image_and_needs_a_pinned_base(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = catalog()
    recipe = PATCHED.model_copy(update={"patches": (Patch.model_validate(FIX),)})
    monkeypatch.setitem(known.recipes, recipe.name, recipe)
    monkeypatch.setitem(known.files, ("recipe", recipe.name), folder / "recipe.yaml")
    host = plan({"s": {"recipe": recipe.name}})
    (service,) = host.services
    assert service.image.steps is not None
    release = render_service(host, service, resolution(host))
    assert f'image: "{service.image.steps.image(DIGEST)}"' in release.compose
    unpinned = replace(service.image, digest=None)
    bare = replace(host, services=(replace(service, image=unpinned),))
    for each, faulty in ((bare, True), (replace(bare, locked=True), False)):
        faults = {item.id for item in check_host(each, known, assumed_hardware(each))}
        assert ("patched-base" in faults) is faulty


@pytest.fixture
def site(here: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A site whose recipe has patches. Returns the digests that a registry has: of all images."""
    entry = f"kind: recipe\nname: mine\nextends: {PATCHED.name}\npatches:\n"
    entry += (
        "  - {patch: fix.patch, into: /usr/lib}\n  - files: [{at: /opt/c, source: fix.patch}]\n"
    )
    # Neither is a file of the service: the steps say that the image has them.
    entry += "arguments: {tool_parser_plugin: /usr/lib/x.py, chat_template: /opt/c}\n"
    (folder / "recipe.yaml").write_text(entry)
    for name in ("link.patch", "out.patch"):
        (folder / name).unlink()
    (here / "inventory.py").write_text(
        "boxes = [('spark-1', {'services': {'s': {'recipe': 'mine'}}, 'gpu': 'gb10'})]\n"
    )
    registry = {"digest": DIGEST}

    def ask(hosts: dict[str, PlannedHost]) -> Resolution:
        answer = resolution(hosts["spark-1"].plan)
        images = {n: replace(i, digest=registry["digest"]) for n, i in answer.images.items()}
        return answer.model_copy(update={"images": images})

    monkeypatch.setattr("sparkwright.cli.lock.ask", ask)
    return registry


def test_patches_over_another_image_are_refused_until_they_are_confirmed(
    site: dict[str, str], here: Path
) -> None:
    other, lock = f"sha256:{'cd' * 32}", here / "fleet.lock"
    assert run("lock", "inventory.py").exit_code == 0
    first = lock.read_text()
    assert run("check", "inventory.py").exit_code == 0
    site["digest"] = other
    upgraded = exits(1, "lock", "inventory.py", "--upgrade").output
    remedy = "sparkwright lock INVENTORY --patched mine"
    for output in (
        upgraded,
        exits(2, "check", "inventory.py").output,
        exits(2, "plan", "inventory.py").output,
        exits(1, "lock", "inventory.py").output,  # which changes nothing
    ):
        words = " ".join(output.split())
        assert re.search(rf"made for \S+ at {DIGEST}, and would change \S+ at {other}", words)
        assert remedy in words
    exits(1, "lock", "inventory.py", "--check")
    assert "did you mean 'mine'" in exits(2, "lock", "inventory.py", "--patched", "mne").output
    exits(2, "lock", "inventory.py", "--patched", "mine", "--check")
    site.clear()  # the registry is out of reach, and need not be asked
    assert f": {other}" in run("lock", "inventory.py", "--patched", "mine").output
    assert run("check", "inventory.py").exit_code == 0
    # Another image of another tag is another base, too; a lock that says nothing is filled up.
    lock.write_text(first.replace("-slim:\n", "-fat:\n").replace("-slim: sha", "-fat: sha"))
    site["digest"] = DIGEST
    assert "-slim at sha256" in exits(1, "lock", "inventory.py").output
    lock.write_text(first.partition("patched:")[0])
    assert "mine's patches is not locked" in exits(2, "check", "inventory.py").output
    assert run("lock", "inventory.py").exit_code == 0
    assert lock.read_text().partition("version:")[0] == first.partition("version:")[0]
