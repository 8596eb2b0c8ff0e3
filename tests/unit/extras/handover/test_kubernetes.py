"""Manifests that a cluster takes, with what the release on the host has."""

import importlib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from sparkwright.findings.user_error import UserError
from tests.golden import compare
from tests.libyaml import safe_load_all
from tests.tables import Tables
from tests.unit.builders import alone, catalog
from tests.unit.extras.handover.services import HERETIC, HOSTILE, container, files, manifests

cases = Tables(__file__)

RECIPES = sorted(name for name, item in alone().items() if not catalog().images[item.image].build)


@pytest.fixture(scope="module", autouse=True)
def _schemas_are_read_once() -> Iterator[None]:
    """The library reads a megabyte of them for each document."""
    utils: Any = pytest.importorskip(
        "kubernetes_validate.utils", reason="make setup installs kubernetes-validate"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(utils, "schema_contents", cache(utils.schema_contents))
        yield


def validate(text: str) -> None:
    """By Kubernetes' own schemas, in which nothing unknown is allowed."""
    kubernetes: Any = importlib.import_module("kubernetes_validate")
    for document in safe_load_all(text):
        kubernetes.validate(document, kubernetes.latest_version(), strict=True)


@pytest.mark.parametrize("recipe", RECIPES)
def test_kubernetes_own_schemas_take_every_recipe(recipe: str) -> None:
    for hardening in ("default", "strict"):
        validate(*files("kubernetes", recipe=recipe, hardening=hardening).values())


@pytest.mark.parametrize("form", ["kubernetes", "quadlet"])
@pytest.mark.parametrize("hardening", ["default", "strict"])
def test_it_is_the_same_service_and_its_key_is_in_no_file(form: str, hardening: str) -> None:
    for path, text in files(form, hardening=hardening).items():
        compare(f"handover/{hardening}/{path.rpartition('/')[2]}", text)


def test_a_start_has_the_time_of_a_boot() -> None:
    probe = container(boot_seconds=1234)["startupProbe"]
    assert probe["failureThreshold"] * probe["periodSeconds"] >= 1234


def test_clients_use_the_port_that_they_used() -> None:
    (port,) = manifests(port=8123)["Service"]["spec"]["ports"]
    assert port == {"name": "http", "port": 8123, "targetPort": "http"}
    assert container(port=8123)["ports"] == [{"name": "http", "containerPort": 8123}]


@pytest.mark.parametrize(
    ("host", "name"),
    [("spark-1", "llm-chat-spark-1"), ("Spark-1", r"llm-chat-spark-1-[0-9a-f]{8}"),
     ("spark.lan", r"llm-chat-spark-lan-[0-9a-f]{8}"),
     ("192.168.0.5", r"llm-chat-192-168-0-5-[0-9a-f]{8}"),
     (f"a{'b' * 60}", r"llm-chat-ab{44}-[0-9a-f]{8}")],
)  # fmt: skip
def test_objects_have_names_that_kubernetes_takes(host: str, name: str) -> None:
    (result,) = {manifest["metadata"]["name"] for manifest in manifests(host).values()}
    assert re.fullmatch(name, result)
    assert len(result) <= 63
    assert container(host)["pod"]["nodeSelector"]["kubernetes.io/hostname"] == host.lower()


def test_a_host_that_is_no_node_and_an_image_of_no_registry_are_refused() -> None:
    with pytest.raises(UserError, match="no node of Kubernetes"):
        manifests("spark_1")
    built, *_ = [
        recipe for recipe in catalog().recipes.values() if catalog().images[recipe.image].build
    ]
    with pytest.raises(UserError, match="built on each host"):
        files("kubernetes", recipe=built.name)


@cases("settings", "gpus")
def test_gpus_are_counted(settings: dict[str, Any], gpus: int) -> None:
    assert container(**settings)["resources"]["limits"]["nvidia.com/gpu"] == gpus


@pytest.mark.parametrize("value", HOSTILE)
def test_every_reader_of_yaml_sees_the_same_text(value: str) -> None:
    (text,) = files("kubernetes", recipe=HERETIC, environment={"A": value}).values()
    # YAML 1.1 and 1.2 differ in what is a number, a truth or a date: nothing is left to that.
    pairs = (pair for document in yaml.compose_all(text) for pair in _pairs(document))
    escaped = value.replace("$", "$$")
    (node,) = [node for key, node in pairs if (key.value, node.value) == ("value", escaped)]
    assert node.style == '"' or re.fullmatch(r"[A-Za-z][A-Za-z/.-]{2,}", node.value)
    validate(text)


def _pairs(node: Any) -> Any:
    """Every key of a document with its value."""
    below = [] if isinstance(node, yaml.ScalarNode) else node.value
    if isinstance(node, yaml.MappingNode):
        yield from node.value
        below = [value for _, value in node.value]
    for value in below:
        yield from _pairs(value)
