"""Addresses of a pool's replicas, from the observations of the pool's host."""

import pytest

from sparkwright.host.lib.addresses import Reach, Reached
from sparkwright.proxy.haproxy import ModelPool, Proxies, Proxy, Replica, render_proxies
from sparkwright.proxy.reachable import settled, unreached, wanted

OWN = Proxy("qwen36", 8000, (Replica("self", "127.0.0.1", 18000, 28000),), engine_key=True)


def _proxies(address: str) -> Proxies:
    replica = Replica("spark-2", address, 8000, 8000)
    return Proxies((OWN,), pools=(ModelPool("pool.qwen36", (replica,)),))


def _address(address: str, seen: Reached | None, config: str | None = None) -> tuple[str, bool]:
    result = settled(_proxies(address), {"spark-2": seen} if seen else {}, config)
    assert result is not None
    assert result.proxies == (OWN,)
    (replica,) = result.pools[0].replicas
    return replica.address, replica.dns


def test_every_replica_of_a_pool_is_probed() -> None:
    """The user's name comes first, then the controller's address."""
    seen = {"spark-1": "10.0.0.1", "spark-2": "10.0.0.2"}
    assert wanted(_proxies("spark-2.local"), seen) == (
        Reach("spark-2", ("spark-2.local", "10.0.0.2"), 8000),
    )
    assert wanted(_proxies("10.0.0.2"), seen) == (Reach("spark-2", ("10.0.0.2",), 8000),)
    assert wanted(None, seen) == wanted(Proxies((OWN,)), seen) == ()


def test_a_name_of_the_controllers_ssh_config_becomes_an_address() -> None:
    seen = Reached("10.0.0.2", "10.0.0.2", tried=("kitchen: Name or service not known",))
    assert _address("kitchen", seen) == ("10.0.0.2", False)


def test_a_dot_local_name_becomes_the_reached_address() -> None:
    assert _address("spark-2.local", Reached("fd00::2", "spark-2.local")) == ("fd00::2", False)
    text = render_proxies(_settled("spark-2.local", Reached("fd00::2", "spark-2.local"))).config
    assert "server spark-2 [fd00::2]:8000 check port 8000" in text
    assert "resolvers" not in text


def test_a_name_in_dns_is_kept_and_resolved_again() -> None:
    seen = Reached("10.0.0.2", "spark-2.example", dns=True)
    assert _address("spark-2.example", seen) == ("spark-2.example", True)
    text = render_proxies(_settled("spark-2.example", seen)).config
    assert "server spark-2 spark-2.example:8000 check port 8000 resolvers names" in text
    assert "\nresolvers names\n    parse-resolv-conf\n" in text


def _settled(address: str, seen: Reached) -> Proxies:
    proxies = settled(_proxies(address), {"spark-2": seen}, None)
    assert proxies is not None
    return proxies


def test_the_users_own_address_stays() -> None:
    assert _address("10.0.0.2", Reached(tried=("10.0.0.2: timed out",))) == ("10.0.0.2", False)
    assert _address("10.0.0.2", Reached("10.0.0.2", "10.0.0.2")) == ("10.0.0.2", False)


def test_a_link_local_address_is_replaced() -> None:
    assert _address("fe80::2", Reached("10.0.0.2", "10.0.0.2")) == ("10.0.0.2", False)


def test_a_replica_that_is_off_keeps_its_address() -> None:
    """The replica's address must not change with every run that does not reach it."""
    off = Reached(tried=("spark-2.local: Name or service not known",))
    for address in ("10.0.0.2", "fd00::2"):
        before = render_proxies(_proxies(address)).config
        assert _address("spark-2.local", off, before) == (address, False)
        assert _address("spark-2.local", None, before) == (address, False)
    named = Reached("10.0.0.2", "spark-2.example", dns=True)
    before = render_proxies(_settled("spark-2.example", named)).config
    assert _address("spark-2.example", off, before) == ("spark-2.example", True)
    assert _address("spark-2.local", off) == ("spark-2.local", False)


def test_an_unreachable_replica_is_reported() -> None:
    off = Reached(tried=("kitchen: Name or service not known", "10.0.0.2: timed out"))
    (result,) = unreached(_proxies("kitchen"), {"spark-2": off})
    assert result.id == "replica-unreachable"
    assert "spark-2: kitchen: Name or service not known; 10.0.0.2: timed out" in result.observed
    assert "lan_address of spark-2" in result.remedy
    assert not result.stops
    assert list(unreached(_proxies("kitchen"), {"spark-2": Reached("10.0.0.2", "10.0.0.2")})) == []


@pytest.mark.parametrize(
    "evil", ["10.0.0.2 ssl verify none", "x\nuser root", "$(reboot)", "", "fe80"]
)
def test_a_host_without_a_reachable_address_does_not_end_the_run(evil: str) -> None:
    """A wrong answer in the configuration of other hosts would end their runs."""
    assert _address("kitchen", Reached(evil or None, "kitchen")) == ("kitchen", False)
    config = f"    server spark-2 {evil}:8000 check port 8000\n"
    result = settled(_proxies("kitchen"), {}, config)
    assert result is not None
    render_proxies(result)
