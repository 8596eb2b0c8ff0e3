"""Settings that would bypass plan and rules: each setting is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.catalog import load_catalog
from sparkwright.config.inventory import HostInput
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError
from sparkwright.site.fleet import plan_fleet
from tests.tables import Tables
from tests.unit.builders import ROOT, SPARK, origin, plan

cases = Tables(__file__)

RECIPE = SPARK["qwen36"]["recipe"]


def _problems(**data: Any) -> list[Finding]:
    fleet = plan_fleet([HostInput("spark-1", {"services": SPARK, **data}, origin)])
    return list(fleet.problems)


@pytest.mark.parametrize("key", ["models_root", "services_root"])
@pytest.mark.parametrize("path", ["/opt/../etc", "/..", "/opt/models/..", "/opt/./models"])
def test_a_root_with_parent_references_is_refused(key: str, path: str) -> None:
    (problem,) = _problems(**{key: path})
    assert problem.subject.key == key
    assert "must not contain . or .." in problem.observed
    assert not _problems(**{key: "/opt/models..old"})


def test_directories_to_adopt_with_parent_references_are_refused() -> None:
    (problem,) = _problems(adopt_directories=["/models", "/home/*/../root"])
    assert problem.subject.key == "adopt_directories.1"


@pytest.mark.parametrize("name", ["--api-key", "-x", "", " ", "a\nb"])
def test_a_served_name_that_looks_like_an_argument_is_refused(name: str) -> None:
    services = {"s": {"recipe": RECIPE, "served_names": ["good", name]}}
    (problem,) = _problems(services=services)
    assert problem.subject.key == "services.s.served_names.1"


@pytest.mark.parametrize("name", ["", "A=B", "1A", "A B"])
def test_a_variable_without_a_name_is_refused(name: str) -> None:
    services = {"s": {"recipe": RECIPE, "environment": {name: "1"}}}
    (problem,) = _problems(services=services)
    assert (problem.subject.key or "").startswith("services.s.environment")


@pytest.mark.parametrize("name", ["", "--", "-1", "max len"])
def test_an_argument_without_a_name_is_refused(name: str) -> None:
    """The rule also applies to a vLLM version without a table of arguments."""
    services = {"s": {"recipe": "qwen36-35b-a3b-heretic-omni-v2", "arguments": {name: "--port=1"}}}
    (problem,) = _problems(services=services)
    assert (problem.subject.key or "").startswith("services.s.arguments")


@cases("services", "data", "message")
def test_a_port_that_the_host_needs_is_refused(
    services: dict[str, Any], data: dict[str, Any], message: str
) -> None:
    (problem,) = _problems(services={"s": {"recipe": RECIPE, **services}}, **data)
    assert message in problem.observed
    assert problem.remedy.startswith("another port")


def test_the_peers_port_is_free_without_sharing() -> None:
    services = {"s": {"recipe": RECIPE, "port": 18650}}
    assert _problems(services=services, peer_sharing=False) == []


def test_extra_arguments_do_not_take_the_proxys_port() -> None:
    services = {"s": {"recipe": "qwen35-27b-dflash",
                      "environment": {"EXTRA_ARGS": "--host 0.0.0.0 --port 8000"}}}  # fmt: skip
    with pytest.raises(UserError) as raised:
        plan(services)
    (problem,) = raised.value.findings
    assert problem.remedy == "bind instead of --host; port instead of --port"


@pytest.mark.parametrize("extra", ["--trust-remote-code", "--api-key abc", "--config /model/x"])
def test_extra_arguments_bypass_no_rule(extra: str) -> None:
    with pytest.raises(UserError):
        plan({"s": {"recipe": "qwen35-27b-dflash", "environment": {"EXTRA_ARGS": extra}}})


@cases("argument", "setting")
@pytest.mark.parametrize("recipe", [RECIPE, "qwen36-35b-a3b-heretic-omni-v2"])
def test_settings_of_the_service_are_refused_as_arguments(
    recipe: str, argument: str, setting: str
) -> None:
    (problem,) = _problems(services={"s": {"recipe": recipe, "arguments": {argument: "x"}}})
    assert problem.subject.place == f"group_data/sparks.py: services.s.arguments.{argument}"
    assert problem.remedy.startswith(f"write {setting}")


def test_settings_of_the_service_are_refused_in_a_users_recipe(tmp_path: Path) -> None:
    entry = {"kind": "recipe", "name": RECIPE, "extends": True, "arguments": {"api-key": "abc"}}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(entry))
    (problem,) = _problems(catalog_directories=[str(tmp_path)])
    assert problem.subject.place == f"recipe {RECIPE}: arguments.api-key"


@cases("kind", "name", "change")
def test_a_users_catalog_has_no_negative_sizes_and_no_outside_paths(
    kind: str, name: str, change: dict[str, Any], tmp_path: Path
) -> None:
    entry = {"kind": kind, "name": name, "extends": True, **change}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(entry))
    with pytest.raises(UserError) as raised:
        load_catalog([ROOT / "catalog", tmp_path])
    assert all(f"{tmp_path}/own.yaml: {next(iter(change))}" in finding.subject.place
               for finding in raised.value.findings)  # fmt: skip
