"""Which doors a host has."""

import json
from typing import Any

import pytest

from sparkwright.findings.user_error import UserError
from sparkwright.plan.plan import HostPlan
from sparkwright.proxy.pools import with_others
from sparkwright.proxy.proxies import health_file, proxies_of
from tests.tables import Tables
from tests.unit import builders

cases = Tables(__file__)

RECIPE = {"recipe": "qwen36-35b-a3b-heretic-dflash"}
EVERYONE = {
    "spark-1": {"services": {"qwen36": {**RECIPE, "port": 8000}}, "ssh_hostname": "10.0.0.1"},
    "spark-2": {"services": {"qwen36": {**RECIPE, "port": 8100}}, "lan_address": "10.0.1.2"},
}


def plan(**data: Any) -> HostPlan:
    return builders.plan(**{"services": {}, **data})


def test_no_door_is_none() -> None:
    bare = plan(services={"qwen36": {**RECIPE, "proxy": False}})
    assert proxies_of(bare, EVERYONE) is None
    assert health_file(bare) is None


def test_a_service_behind_a_door_listens_where_only_the_door_reaches_it() -> None:
    behind = plan(services={"qwen36": RECIPE})
    (service,) = behind.services
    gateway = proxies_of(behind, EVERYONE)
    assert gateway is not None
    (door,) = gateway.proxies
    assert (door.bind, door.port) == ("*", 8000)
    (own,) = door.replicas
    assert (own.address, own.health) == (service.socket, "/run/sparkwright-health/qwen36.sock")
    (asked,) = json.loads(health_file(behind) or "")["services"]
    assert (asked["address"], asked["health"]) == (own.address, own.health)
    assert asked["model"] == "qwen36-35b-heretic"


def test_a_fleets_door_has_every_host_of_the_service_behind_it() -> None:
    gateway = proxies_of(plan(load_balancer={"qwen36": {"port": 8080}}), EVERYONE)
    assert gateway is not None
    (door,) = gateway.proxies
    assert [(replica.name, replica.address, replica.port) for replica in door.replicas] == [
        ("spark-1", "10.0.0.1", 8000),
        ("spark-2", "10.0.1.2", 8100),
    ]
    only = proxies_of(
        plan(load_balancer={"qwen36": {"port": 8080, "hosts": ["spark-2"]}}), EVERYONE
    )
    assert only is not None
    assert [replica.name for replica in only.proxies[0].replicas] == ["spark-2"]


@cases("gateway", "message")
def test_a_door_to_nobody_is_a_mistake(gateway: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        proxies_of(plan(load_balancer=gateway), EVERYONE)


def test_who_has_others_beside_it() -> None:
    door: dict[str, Any] = {"load_balancer": {"qwen36": {"port": 1}}}
    behind = {**EVERYONE, "door": door}
    assert with_others("spark-1", EVERYONE) == frozenset()
    assert with_others("spark-1", behind) == {"qwen36"}
    assert with_others("door", behind) == frozenset()
    behind["door"] = {"load_balancer": {"qwen36": {"port": 1, "hosts": ["spark-2"]}}}
    assert with_others("spark-2", behind) == frozenset()


def test_a_port_is_given_once() -> None:
    services = {"qwen36": {**RECIPE, "port": 8080}}
    with pytest.raises(UserError, match="port 8080 is taken by service 'qwen36'"):
        proxies_of(plan(services=services, load_balancer={"qwen36": {"port": 8080}}), EVERYONE)
    plan(services={"qwen36": {**RECIPE, "port": 65535}})  # nothing listens beyond it


def test_names_of_our_own_units_are_not_free() -> None:
    with pytest.raises(UserError, match="unit of sparkwright's own"):
        plan(services={"gateway": RECIPE})
