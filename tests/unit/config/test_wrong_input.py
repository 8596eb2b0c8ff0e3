"""Every wrong input is rejected before use: with file, line and key, and the allowed values."""

import json
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.catalog import load_catalog
from sparkwright.catalog.entries import Image, Model, Recipe
from sparkwright.config import python_files
from sparkwright.config.inventory import read_inventory
from sparkwright.config.parse import parse_settings
from sparkwright.config.settings import HostSettings
from sparkwright.documents import json_text, yaml_text
from sparkwright.documents.bounds import DEEPEST, Unusable, bounded
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.findings.validation import _PATTERNS
from sparkwright.resolve.lock import read_lock
from tests.tables import Tables
from tests.unit.builders import SPARK, catalog, origin, plan

cases = Tables(__file__)

RECIPE = SPARK["qwen36"]["recipe"]
MISTAKES: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("mistakes.yaml").read_text()
)


def problems(services: Any = None, **data: Any) -> list[Finding]:
    """Messages about wrong settings."""
    with pytest.raises(UserError) as raised:
        plan(SPARK if services is None else services, **data)
    return list(raised.value.findings)


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_reported_with_its_location_and_remedy(case: dict[str, Any]) -> None:
    (problem,) = problems(case.get("services"), **case.get("data", {}))
    assert problem.subject.host == "spark-1"
    assert problem.subject.place == f"group_data/sparks.py: {case['where']}"
    assert case["what"] in problem.observed
    assert case["remedy"] in problem.remedy


def test_every_pattern_of_a_setting_has_a_remedy() -> None:
    schemas = [part.model_json_schema() for part in (HostSettings, Recipe, Model, Image)]
    patterns = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(schemas)))
    assert len(patterns) > 20
    assert not [pattern for pattern in map(json.loads, patterns) if pattern not in _PATTERNS]


def test_services_of_a_host_share_no_port_and_no_name() -> None:
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


def test_keys_of_pyinfra_and_of_the_user_are_ignored() -> None:
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


def test_a_missing_catalog_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        load_catalog([tmp_path / "none"])


def test_a_users_entry_overrides_the_librarys_entry_of_the_same_name(tmp_path: Path) -> None:
    shipped = catalog().models["qwen36-35b-a3b-dflash"]
    mine = shipped.model_copy(update={"revision": "v9"})
    (tmp_path / "mine.yaml").write_text(mine.model_dump_json())  # JSON is YAML
    root = Path(__file__).resolve().parents[3] / "catalog"
    assert load_catalog([root, tmp_path]).models[mine.name].revision == "v9"


BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]" for n in range(1, 9))])


def refusal(step: Callable[[], object]) -> str:
    """Message of a mistake."""
    with pytest.raises(UserError) as raised:
        step()
    return str(raised.value)


@cases(
    "text",
    "message",
    more=[
        ("x = " + "[" * 100_000, "not valid Python"),
        ("x = " + "-" * 100_000 + "1", "nested too deep"),
        ("x = [0 " + "for i in () " * 20_000 + "]", "too many 'for'"),
    ],
)
def test_a_wrong_inventory_is_reported_with_its_location(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setattr(python_files, "COMPUTING", 0.3)
    file = tmp_path / "lab.py"
    file.write_text(text, encoding="utf-8")
    result = refusal(lambda: read_inventory(file))
    assert message in result
    assert str(file) in result


def test_an_inventory_in_another_encoding_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "lab.py"
    file.write_bytes("# -*- coding: latin-1 -*-\n# Küche\n".encode("latin-1"))
    assert f"{file}: line 2" in refusal(lambda: read_inventory(file))
    assert "a directory" in refusal(lambda: read_inventory(tmp_path))


def test_output_of_an_inventory_goes_to_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lab.py"
    file.write_text("print('hello')\nsparks = ['spark-1']\n")
    read_inventory(file)
    assert capsys.readouterr() == ("", "hello\n")


def test_settings_in_ansibles_style_are_refused(here: Path) -> None:
    Path("lab.py").write_text("sparks = ['spark-1']\n")
    Path("group_data").mkdir()
    Path("group_data/sparks.yml").write_text("a: 1\n")
    result = refusal(lambda: read_inventory(Path("lab.py")))
    assert "group_data/sparks.yml" in result
    assert "sparks.py" in result


@pytest.mark.parametrize("word", ["image_tag", "=x", ""])
def test_data_without_a_value_is_refused(tmp_path: Path, word: str) -> None:
    file = tmp_path / "lab.py"
    file.write_text("sparks = ['spark-1']\n")
    assert "KEY=VALUE" in refusal(lambda: read_inventory(file, [word]))


def test_data_of_the_command_line_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "lab.py"
    file.write_text("sparks = ['spark-1']\n")
    for value in ("[" * 100_000, "[" * 60 + "]" * 60, "NaN", "[1e999]"):
        assert "--data a=" in refusal(partial(read_inventory, file, [f"a={value}"]))


@cases(
    "data",
    "where",
    more=[
        ({"disk_headroom_gib": 10**400}, "disk_headroom_gib"),
        ({"keep_releases": 10**400}, "keep_releases"),
        ({"image_tag": "x" * 2_000_000}, "image_tag"),
        ({"no_proxy": [["x"] * 3] * 100_000}, "no_proxy"),
    ],
)
def test_a_wrong_setting_is_reported_with_its_location(data: dict[str, Any], where: str) -> None:
    (problem,) = said_of(data)
    assert problem.subject.place == f"group_data/sparks.py: {where}"
    assert problem.remedy


def said_of(data: dict[str, Any]) -> list[Any]:
    """The problems of a host with this data."""
    with pytest.raises(UserError) as raised:
        plan(SPARK, **data)
    return list(raised.value.findings)


def test_an_invalid_password_is_not_shown() -> None:
    (problem,) = said_of({"ssh_password": ["hunter2-hunter2"]})
    assert "hunter2" not in str(UserError([problem]))


def test_values_of_any_depth_are_bounded() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = {"a": deep}
    itself: list[Any] = []
    itself.append(itself)
    for value in (deep, itself, [[0] * 1000] * 1000, 10**400, {"a": float("nan")}):
        with pytest.raises(Unusable):
            bounded(value)
    shallow: Any = 1
    for _ in range(DEEPEST):
        shallow = [shallow]
    bounded(shallow)


@cases(
    "text",
    "message",
    "line",
    more=[
        ("[" * 100_000, "nested lists", 1),
        ("- " * 100_000, "nested lists", 1),
        ("a:\n" + BOMB, "values, aliases expanded", None),
        ("x: " + "9" * 400, "more than 64 bits", None),
        ("x: " + "9" * 6000, "not a valid value", 1),
    ],
)
def test_a_yaml_mistake_names_its_line(text: str, message: str, line: int | None) -> None:
    with pytest.raises(Unusable) as raised:
        yaml_text.load(text)
    assert message in raised.value.fault
    if line is not None:
        assert raised.value.line == line


def test_aliases_that_repeat_little_are_allowed() -> None:
    assert yaml_text.load("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}") == {
        "a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2},
    }  # fmt: skip


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 60 + "]" * 60, "NaN", "9" * 6000, "{", ""])
def test_a_wrong_json_file_is_reported(text: str) -> None:
    with pytest.raises(Unusable):
        json_text.load(text)


LOCK = cases.data["LOCK"]


@cases("old", "new", "message")
def test_an_invalid_lock_is_never_overwritten(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    file = tmp_path / "fleet.lock"
    file.write_text(json.dumps(LOCK))
    assert read_lock(file) is not None
    assert old in json.dumps(LOCK)
    file.write_text(json.dumps(LOCK).replace(old, new))
    result = refusal(lambda: read_lock(file))
    assert message in result
    assert "--upgrade" not in result  # an upgrade would replace every pin


def test_an_unreadable_lock_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "fleet.lock"
    file.write_bytes(b"images: {}\nmodels: {\xff}\n")
    result = refusal(lambda: read_lock(file))
    assert f"{file}: line 2" in result
    assert "git restore" in result
    assert "--upgrade" not in result
    file.write_text("images: {}\n<<<<<<< ours\nmodels: {}\n")
    assert f"{file}: line 2" in refusal(lambda: read_lock(file))
    assert "a directory" in refusal(lambda: read_lock(tmp_path))


def test_a_file_that_blocks_forever_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fleet.lock")
    assert "not a regular file" in refusal(lambda: read_lock(tmp_path / "fleet.lock"))
    assert "not a regular file" in refusal(lambda: read_lock(Path("/dev/zero")))


@pytest.mark.parametrize("place", ["/library/models", "/run/media/me/disk/models", "/lib64x/a"])
def test_a_directory_that_only_resembles_a_system_path_is_accepted(place: str) -> None:
    assert HostSettings.model_validate({"services": {}, "models_root": place}).models_root == place
