"""Arguments of a vLLM version, and the tables for checking them."""

import itertools
import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.checks.configuration import RULES
from sparkwright.engines import ENGINES, engine
from sparkwright.engines.tables import release
from sparkwright.engines.vllm.arguments import PARSER
from sparkwright.engines.vllm.speculation_checks import scheduled_token_budget
from sparkwright.engines.vllm.table import defaults as defaults_of
from sparkwright.engines.vllm.table import nearest, table, versions
from sparkwright.findings.finding import Finding
from tests.fuzz.drawn_values import json_values
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import ROOT, catalog

cases = Tables(__file__)

DFLASH: dict[str, Any] = {"method": "dflash", "model": "/d", "num_speculative_tokens": 11}


def judged(
    version: str | None,
    arguments: dict[str, Any],
    environment: dict[str, str] | None = None,
    also: Any = None,
) -> list[Finding]:
    """Findings on arguments and variables; each has observed, reason, remedy and source."""
    findings = RULES.report(PARSER.check(version, arguments, environment or {}, also or {}))
    assert all(
        finding.observed and finding.reason and finding.remedy and finding.source
        for finding in findings
    )
    return findings


def _findings(version: str, arguments: dict[str, Any], also: Any = None) -> list[tuple[str, str]]:
    findings = judged(version, arguments, also=also)
    return [
        (finding.id, (finding.subject.key or "").removeprefix("arguments.")) for finding in findings
    ]


#: Arguments with one mistake, and valid arguments, by version.
ARGUMENTS = safe_load(Path(__file__).with_name("arguments.yaml").read_text())


@pytest.mark.parametrize(("version", "arguments", "rule", "key"), ARGUMENTS["mistakes"])
def test_a_mistake_is_reported_at_its_key(
    version: str, arguments: dict[str, Any], rule: str, key: str
) -> None:
    assert _findings(version, arguments) == [(rule, key)]


@pytest.mark.parametrize(("version", "arguments"), ARGUMENTS["passes"])
def test_arguments_that_the_parser_accepts_cause_no_finding(
    version: str, arguments: dict[str, Any]
) -> None:
    assert _findings(version, arguments) == []


@pytest.mark.parametrize(
    ("name", "version"),
    [(name, each) for name in ("vllm", "sglang") for each in engine(name).parser.tables.versions()],
)
def test_no_value_of_the_parser_is_refused(name: str, version: str) -> None:
    """Each choice of each argument, or a value of its kind, and a flag's ``--no-`` form."""
    parser = engine(name).parser
    plain: dict[str, list[Any]] = {
        "int": [1], "float": [0.5], "size": ["32k", 1024], "auto-size": ["auto"], "flag": [True],
    }  # fmt: skip
    values = [
        (name, value)
        for name, own in parser.tables.table(version).arguments.items()
        for value in [*(own.choices or plain.get(own.kind, [])), *[False] * own.negatable]
    ]
    assert len(values) > 250
    judged = (RULES.report(parser.check(version, dict([pair]), {}, {})) for pair in values)
    assert [*itertools.chain(*judged)] == []


@cases("name", "arguments")
def test_a_builds_own_values_may_be_declared(name: str, arguments: dict[str, Any]) -> None:
    assert len(_findings("0.24.0", arguments)) == 1
    assert _findings("0.24.0", arguments, {name: ["ours"]}) == []


def test_the_versions_with_an_unknown_argument_are_named() -> None:
    (result,) = judged("0.24.0", {"device_memory_utilization": 0.5})
    assert result.reason == "vLLM 0.32.0, 0.33.0 has the argument, but 0.24.0 does not"


@cases("version", "name", "rules")
def test_findings_about_environment_variables_depend_on_the_version(
    version: str, name: str, rules: list[str]
) -> None:
    assert [item.id for item in judged(version, {}, {name: "1"})] == rules


def test_the_cards_own_warning_about_speculators_is_repeated() -> None:
    """The most similar name, mlp_speculator, is another method."""
    (result,) = judged("0.24.0", {"speculative_config": {**DFLASH, "method": "speculators"}})
    assert result.remedy.startswith("speculative_config.method: dflash")
    assert "mlp_speculator" not in result.remedy


@pytest.mark.parametrize("version", ["0.24.0rc1", "0.24.0+local", "v0.24.0", "0.24", "0.24.0.dev3"])
def test_a_build_of_a_release_uses_the_releases_table(version: str) -> None:
    assert release(version) == (0, 24, 0)
    assert nearest(version) == "0.24.0"
    (result,) = judged(version, {"nonsense": 1})
    assert result.severity == "warning"
    assert f"there is no table of {version}" in result.source


@cases("version", "batched", "seqs", "left")
def test_the_token_budget_depends_on_the_version(
    version: str | None, batched: int, seqs: int, left: int
) -> None:
    assert scheduled_token_budget(batched, seqs, 11, version) == left


@pytest.mark.parametrize("name", ENGINES)
@given(data=st.data())
def test_any_value_yields_findings_and_never_an_error(name: str, data: st.DataObject) -> None:
    program = engine(name)
    tables = program.parser.tables
    version = data.draw(st.sampled_from(tables.versions()))
    keys = st.sampled_from(sorted(tables.table(version).arguments))
    arguments: Any = data.draw(st.dictionaries(keys, json_values(st.text(max_size=8)), max_size=4))
    program.limits(arguments)
    for item in RULES.report(program.parser.check(version, arguments, {}, {})):
        key = (item.subject.key or "").removeprefix("arguments.")
        assert any(f"{key}.".startswith(f"{each}.") for each in arguments)


#: A package of vLLM's shape, with the parts that the dump reads: file -> text.
FAKE = safe_load(Path(__file__).with_name("fake_package.yaml").read_text())


def test_a_table_is_made_from_a_dump_of_the_installed_vllm(tmp_path: Path) -> None:
    for name, text in FAKE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with (ROOT / ".ci/vllm_dump.py").open() as program:  # as `docker run ... -` receives it
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


#: Versions with a table in the lab's fake.
CAPTURED = sorted(path.stem for path in (ROOT / "lab/serving/flags").glob("*.json"))


@cases("name", "others")
def test_every_version_of_an_image_has_a_table(name: str, others: list[str]) -> None:
    images = [image for image in catalog().images.values() if image.engine == name]
    tags = [tag for image in images for tag in image.tags.values()]
    held = {tag.version for tag in tags if tag.version} | set(others)
    assert held <= set(engine(name).parser.tables.versions())
    assert set(CAPTURED) <= set(versions())


@cases("version", "hybrid", "defaults")
def test_the_tables_contain_the_defaults(
    version: str, hybrid: bool, defaults: dict[str, object]
) -> None:
    expected = defaults_of(version, hybrid)
    assert {name: expected.get(name) for name in defaults} == defaults
    assert "max_model_len" not in expected  # the model's configuration has the default


@pytest.mark.parametrize("version", CAPTURED)
def test_the_tables_cover_the_captured_parsers(version: str) -> None:
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


@cases("version", "expected")
def test_the_nearest_table_is_the_versions_own_or_the_next_lower_table(
    version: str, expected: str
) -> None:
    assert nearest(version) == expected


def test_unknown_arguments_are_warnings_without_a_table_of_the_version() -> None:
    (expected,) = judged("0.24.0", {"max_modle_len": 1})
    (guessed,) = judged("0.25.0", {"max_modle_len": 1})
    assert (expected.severity, guessed.severity) == ("error", "warning")
    assert "there is no table of 0.25.0" in guessed.source
    assert "max_model_len" in expected.remedy


def test_without_a_version_only_variables_are_judged() -> None:
    assert judged(None, {"nonsense": 1}, {"VLLM_NVFP4_GEMM_BACKEND": "x"}) == []


@pytest.mark.parametrize("program", ENGINES)
def test_every_argument_is_allowed_or_refused_in_imported_recipes(program: str) -> None:
    """A new table brings new arguments: each is listed, or left out with a reason."""
    own, tables = engine(program).allowlist, engine(program).parser.tables
    names = {name for version in tables.versions() for name in tables.table(version).arguments}
    patterns = [re.split("[.=]", name.lstrip("="))[0] for name in own.listed["arguments"]]
    listed = {name for name in names if any(fnmatchcase(name, each) for each in patterns)}
    refused = {name for name in names if any(fnmatchcase(name, each) for each in own.refused)}
    assert names <= listed | refused
    # A name in `listed` and in `refused` is more exact in `listed`, or has only some of its values
    # or keys there.
    assert not {name for name in own.listed["env"] if own.refused.get(name)}
