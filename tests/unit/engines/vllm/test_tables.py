"""How a table of arguments is made: from a dump of a real parser, or of a small fake of it."""

import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from sparkwright.engines import ENGINES, engine
from sparkwright.engines.vllm.table import defaults as defaults_of
from sparkwright.engines.vllm.table import nearest, table, versions
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import ROOT, catalog
from tests.unit.engines.vllm.test_arguments import judged

cases = Tables(__file__)

#: A package of vLLM's shape, with what the dump looks at: file -> text.
FAKE = safe_load(Path(__file__).with_name("fake_package.yaml").read_text())


def test_a_table_is_made_from_a_dump_of_the_installed_vllm(tmp_path: Path) -> None:
    for name, text in FAKE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with (ROOT / ".ci/vllm_dump.py").open() as program:  # as `docker run ... -` gets it
        done = subprocess.run(
            [sys.executable, "-"],
            stdin=program,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
    assert "reasoning parsers: left out" in done.stderr
    (tmp_path / "dump.json").write_text(done.stdout)
    printed = subprocess.run(
        [sys.executable, str(ROOT / ".ci/vllm_table.py"), str(tmp_path / "dump.json")],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    made = json.loads(printed.stdout)
    for key, value in cases.data["made_of_a_dump"].items():
        assert made[key] == value
    for key, value in cases.data["some_made_of_a_dump"].items():
        assert made[key].items() >= value.items()


#: Versions that the lab's fake has a table of.
CAPTURED = sorted(path.stem for path in (ROOT / "lab/serving/flags").glob("*.json"))


def test_there_is_a_table_of_every_version_that_an_image_holds() -> None:
    """And of the newest one of vLLM's own."""
    images = [image for image in catalog().images.values() if image.engine == "vllm"]
    tags = [tag for image in images for tag in image.tags.values()]
    assert {tag.version for tag in tags if tag.version} | {"0.33.0"} <= set(versions())
    assert set(CAPTURED) <= set(versions())


@cases("version", "hybrid", "defaults")
def test_the_tables_know_the_defaults(
    version: str, hybrid: bool, defaults: dict[str, object]
) -> None:
    expected = defaults_of(version, hybrid)
    assert {name: expected.get(name) for name in defaults} == defaults
    assert "max_model_len" not in expected  # the model says


@pytest.mark.parametrize("version", CAPTURED)
def test_the_tables_know_what_the_captured_parsers_know(version: str) -> None:
    """The lab's fake has its own extract of the same captures."""
    capture = json.loads((ROOT / f"lab/serving/flags/{version}.json").read_text())
    flags = {flag for option in capture["options"] for flag in option["flags"]}
    expected = {f"--{name.replace('_', '-')}" for name in table(version).arguments}
    assert expected <= flags
    assert {flag for flag in flags - expected if not flag.startswith("--no-")} <= {
        flag
        for flag in flags
        if not flag.startswith("--") or flag in ("--help", *_second_names(capture))
    }


def _second_names(capture: dict[str, Any]) -> list[str]:
    """Long flags that only repeat an argument under another name."""
    return [
        flag
        for option in capture["options"]
        for flag in [name for name in option["flags"] if name.startswith("--")][1:]
    ]


def test_the_nearest_table_is_the_versions_own_or_the_next_lower() -> None:
    assert nearest("0.24.0") == "0.24.0"
    assert nearest("0.24.1") == "0.24.0"
    assert nearest("0.31.9") == "0.28.0"
    assert nearest("1.0") == "0.33.0"
    assert nearest("0.19.1") == "0.19.1"
    assert nearest("0.18.0") == "0.19.1"
    assert table("0.24.0").arguments["enable_prefix_caching"].negatable


def test_unknown_arguments_are_warnings_where_there_is_no_table_of_the_version() -> None:
    (expected,) = judged("0.24.0", {"max_modle_len": 1})
    (guessed,) = judged("0.25.0", {"max_modle_len": 1})
    assert (expected.severity, guessed.severity) == ("error", "warning")
    assert "there is no table of 0.25.0" in guessed.source
    assert "max_model_len" in expected.remedy


def test_without_a_version_only_variables_are_judged() -> None:
    assert judged(None, {"nonsense": 1}, {"VLLM_NVFP4_GEMM_BACKEND": "x"}) == []


@pytest.mark.parametrize("program", ENGINES)
def test_every_argument_is_judged_for_recipes_of_somebody_elses(program: str) -> None:
    """A new table brings new arguments: each is listed, or left out for a reason."""
    own, tables = engine(program).allowlist, engine(program).parser.tables
    names = {name for version in tables.versions() for name in tables.table(version).arguments}
    patterns = [re.split("[.=]", name.lstrip("="))[0] for name in own.listed["arguments"]]
    listed = {name for name in names if any(fnmatchcase(name, each) for each in patterns)}
    refused = {name for name in names if any(fnmatchcase(name, each) for each in own.refused)}
    assert names <= listed | refused
    # Where both have a name, some of its values or keys are listed, or the list is more exact.
    assert not {name for name in own.listed["env"] if own.refused.get(name)}
