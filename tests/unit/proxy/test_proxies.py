"""Proxies of a host."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sparkwright.findings.user_error import UserError
from sparkwright.host.models.document import Key
from sparkwright.host.models.report import UsageRow
from sparkwright.plan.plan import HostPlan
from sparkwright.proxy.pools import planned_pools, with_others
from sparkwright.proxy.proxies import health_file, proxies_of
from sparkwright.results.usage import summed
from sparkwright.site.address import door_of
from tests.unit import builders

RECIPE = {"recipe": "qwen36-35b-a3b-heretic-dflash"}
EVERYONE: dict[str, dict[str, Any]] = {
    "spark-1": {"services": {"qwen36": {**RECIPE, "port": 8000}}, "ssh_hostname": "10.0.0.1"},
    "spark-2": {"services": {"qwen36": {**RECIPE, "port": 8100}}, "lan_address": "10.0.1.2"},
}


def plan(**data: Any) -> HostPlan:
    return builders.plan(**{"services": {}, **data})


def test_a_host_that_needs_no_proxy_gets_no_proxy() -> None:
    bare = plan(services={"qwen36": {**RECIPE, "proxy": False}})
    assert proxies_of(bare, EVERYONE) is None
    assert health_file(bare) is None


@pytest.mark.parametrize(("do", "route"), [("stop", ""), ("sleep", "/is_sleeping")])
def test_health_recognizes_a_sleeping_engine_by_its_route(do: str, route: str) -> None:
    text = health_file(plan(services={"a": {**RECIPE, "idle": {"after": "1h", "do": do}}}))
    assert [each["sleeps"] for each in json.loads(text or "")["services"]] == [route]


def test_a_pool_has_services_with_the_same_names() -> None:
    both = plan(services={"qwen36": RECIPE, "more": {**RECIPE, "served_names": ["a"], "port": 1}})
    own = builders.plan({"qwen36": {**RECIPE, "served_names": ["qwen36-fast", "b"]}}, "spark-2")
    away = builders.plan({"far": {**RECIPE, "proxy": False, "served_names": ["c"]}}, "spark-3")
    pools = planned_pools([own, away, both])
    assert [(pool.name, pool.names, [*pool.services]) for pool in pools] == [
        ("pool.more", ("a",), ["spark-1"]),
        ("pool.qwen36", ("qwen36-35b-heretic", "qwen36-deep"), ["spark-1"]),
        ("pool.qwen36.1", ("qwen36-fast",), ["spark-1", "spark-2"]),
        ("pool.qwen36.2", ("b",), ["spark-2"]),
    ]


def test_the_address_serves_every_hosts_services() -> None:
    planned = plan(address={"port": 8080}, keys={"tv": {"requests_day": 9}, "laptop": {}})
    pools = planned_pools(builders.plan(data["services"], host) for host, data in EVERYONE.items())
    gateway = proxies_of(planned, EVERYONE, pools)
    assert gateway is not None
    assert [(door.name, door.port) for door in gateway.proxies] == [("address.models", 8080)]
    (pool,) = gateway.pools
    assert [(replica.name, replica.address, replica.port) for replica in pool.replicas] == [
        ("spark-1", "10.0.0.1", 8000),
        ("spark-2", "10.0.1.2", 8100),
    ]
    assert gateway.limited == ("tv",)


def test_two_addresses_share_a_keys_limits_and_their_counts_are_summed() -> None:
    everyone = {host: {**data, "address": {}} for host, data in EVERYONE.items()}
    keys = {"tv": {"requests_day": 9}}
    door = door_of(plan(address={}, keys=keys), (), {}, everyone, "/pools.sock")
    assert door
    assert (door.peers, door.keys) == (("spark-2",), {"tv": Key(requests_day=9)})
    row = UsageRow("2026-11-23", "tv", "small", 2, 0, 5, 7, 0.5, 0)
    other = replace(row, model="large")
    assert summed([row, other, row]) == [
        other, replace(row, requests=4, tokens_in=10, tokens_out=14, seconds=1.0),
    ]  # fmt: skip


def test_replicas_beside_a_service_are_named() -> None:
    behind: dict[str, dict[str, Any]] = {**EVERYONE, "door": {"address": {}}}
    assert with_others("spark-1", EVERYONE) == frozenset()
    assert with_others("spark-1", behind) == {"qwen36"}
    assert with_others("door", behind) == frozenset()
    assert (
        with_others("spark-2", {"spark-2": {**EVERYONE["spark-2"], "address": {}}}) == frozenset()
    )


def test_a_port_is_assigned_once() -> None:
    services = {"qwen36": {**RECIPE, "port": 8080}}
    with pytest.raises(UserError, match="port 8080 is taken by service 'qwen36'"):
        proxies_of(plan(services=services, address={"port": 8080}), EVERYONE)
    plan(services={"qwen36": {**RECIPE, "port": 65535}})  # the service needs no higher port


def test_names_of_our_own_units_are_reserved() -> None:
    with pytest.raises(UserError, match="unit of sparkwright's own"):
        plan(services={"gateway": RECIPE})
