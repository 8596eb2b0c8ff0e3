"""Every mistake in the user's input is reported with its place and a remedy, all at once."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.catalog import load_catalog
from sparkwright.catalog.entries import Image, Model, Recipe
from sparkwright.config.parse import parse_settings
from sparkwright.config.settings import HostSettings
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.findings.validation import _PATTERNS
from tests.tables import Tables
from tests.unit.builders import SPARK, catalog, origin, plan

cases = Tables(__file__)

RECIPE = SPARK["qwen36"]["recipe"]
MISTAKES: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("mistakes.yaml").read_text()
)


def problems(services: Any = None, **data: Any) -> list[Finding]:
    """Messages to settings that are wrong."""
    with pytest.raises(UserError) as raised:
        plan(SPARK if services is None else services, **data)
    return list(raised.value.findings)


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_reported_with_its_place_and_remedy(case: dict[str, Any]) -> None:
    (problem,) = problems(case.get("services"), **case.get("data", {}))
    assert problem.subject.host == "spark-1"
    assert problem.subject.place == f"group_data/sparks.py: {case['where']}"
    assert case["what"] in problem.observed
    assert case["remedy"] in problem.remedy


def test_every_pattern_of_a_setting_has_words_for_what_to_write() -> None:
    schemas = [part.model_json_schema() for part in (HostSettings, Recipe, Model, Image)]
    patterns = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(schemas)))
    assert len(patterns) > 20
    assert not [pattern for pattern in map(json.loads, patterns) if pattern not in _PATTERNS]


def test_one_port_and_one_name_for_each_service() -> None:
    two = {"a": {"recipe": RECIPE}, "b": {"recipe": RECIPE}}
    result = problems(two)
    assert [p.subject.place.rsplit(".", 1)[1] for p in result] == ["port", *(["served_names"] * 3)]
    assert "taken by service 'a'" in result[0].observed


def test_a_host_without_services_is_reported() -> None:
    with pytest.raises(UserError, match="this host has no services"):
        parse_settings("spark-1", {}, origin)


def test_all_mistakes_are_reported_at_once() -> None:
    result = problems({"q": {"recip": "x", "port": -1}}, imge_tag="x", disk_headroom_gib="much")
    assert len(result) == 5


def test_keys_of_pyinfra_and_of_the_user_are_passed_over() -> None:
    settings = parse_settings(
        "spark-1", {"services": SPARK, "ssh_user": "me", "_sudo": True, "my_rack": 3}, origin
    )
    assert list(settings.services) == ["qwen36"]


def test_the_same_mistake_on_many_hosts_is_reported_once() -> None:
    same = [mistake("a.py: key", "wrong", "right", host) for host in ("one", "two")]
    text = str(UserError(same))
    assert text.count("wrong") == 1
    assert "one, two: a.py: key" in text


CATALOG_MISTAKES = cases.data["CATALOG_MISTAKES"]


@pytest.mark.parametrize(("text", "reason"), CATALOG_MISTAKES.items())
def test_a_mistake_in_a_catalog_file_names_the_file(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as raised:
        load_catalog([tmp_path])
    assert any(reason in f"{p.observed} {p.remedy}" for p in raised.value.findings)
    assert all(str(file) in p.subject.place for p in raised.value.findings)


def test_a_catalog_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        load_catalog([tmp_path / "none"])


def test_a_users_catalog_overrides_ours_by_name(tmp_path: Path) -> None:
    shipped = catalog().models["qwen36-35b-a3b-dflash"]
    mine = shipped.model_copy(update={"revision": "v9"})
    (tmp_path / "mine.yaml").write_text(mine.model_dump_json())  # JSON is YAML
    root = Path(__file__).resolve().parents[3] / "catalog"
    assert load_catalog([root, tmp_path]).models[mine.name].revision == "v9"
