"""Ranks: one release for all hosts of a cluster, and each host's own part of the release."""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.host.judge import judge
from sparkwright.checks.smoke.outside import entrances
from sparkwright.config.keys import Keys
from sparkwright.config.secrets import Secret
from sparkwright.host.lib.records import encode
from sparkwright.host.observe import ServiceState
from sparkwright.plan.desired import Desired
from sparkwright.proxy.pools import planned_pools, with_others
from sparkwright.proxy.proxies import proxies_of
from sparkwright.site.desired import secrets_of
from tests import systemd
from tests.libyaml import safe_load
from tests.unit.builders import probe
from tests.unit.clusters.fleets import data, desired, names, pair

ENGINE = "sk-of-the-engine-0123456789"

KEYS = Keys(
    {"default": (Secret("sk-0123456789abcdef"),)}, Secret(ENGINE), {"pair": Secret("sk-of-ranks")}
)


def compose(row: Desired) -> dict[str, Any]:
    """The container of a host's first service."""
    result: dict[str, Any] = safe_load(row.services[0].compose)["services"]["engine"]
    return result


def test_a_rank_with_another_address_changes_the_other_ranks_release() -> None:
    before = pair()["spark-1"].services[0].release
    clusters = data()["clusters"]
    clusters["pair"]["addresses"]["spark-2"] = "10.0.0.99"
    assert pair(clusters=clusters)["spark-1"].services[0].release != before


def test_a_recipe_sets_no_address_for_all_ranks() -> None:
    service = {**data()["services"]["chat"], "environment": {"VLLM_HOST_IP": "10.9.9.9"}}
    for item in pair(services={"chat": service}).values():
        assert compose(item)["environment"]["VLLM_HOST_IP"] in ("10.0.0.11", "10.0.0.12")


def test_connectx_needs_no_further_settings() -> None:
    hosts = pair(clusters={"pair": {"hosts": names(2), "fabric": "cx7"}})
    for number, item in enumerate(hosts.values()):
        container = compose(item)
        environment = container["environment"]
        assert environment["VLLM_HOST_IP"] == f"192.168.177.{11 + number}"
        # The host determines values that depend on the cage, at each start.
        assert container["env_file"] == ["/opt/sparkwright/services/chat/fabric.env"]
        assert not {name for name in environment if name.startswith(("NCCL_", "GLOO_"))}
        (service,) = item.services
        assert service.rank is not None
        assert service.rank.shape == "pair"
        assert service.rank.environment["NCCL_SOCKET_IFNAME"] == "enp1s0f1np1"
        assert container["devices"] == ["/dev/infiniband:/dev/infiniband"]
        assert container["cap_add"] == ["IPC_LOCK"]
        assert container["ulimits"] == {"memlock": -1}
        assert "privileged" not in container
        assert (container["network_mode"], container["ipc"]) == ("host", "private")
        assert container["shm_size"] == "16gb"


def test_only_the_head_has_key_proxy_and_clients() -> None:
    head, follower = pair().values()
    assert "secrets.env" in head.services[0].compose
    assert "secrets.env" not in follower.services[0].compose
    assert compose(follower)["entrypoint"] == ["vllm"]
    assert follower.plan.services[0].proxy is False
    assert proxies_of(follower.plan, dict.fromkeys(names(2), data())) is None
    assert entrances(follower.plan) == ()
    (service,) = follower.services
    secrets = secrets_of(follower.plan, KEYS)
    assert {path: text.value for path, text in secrets.items()} == {
        service.secrets: "SPARKWRIGHT_RANKS=sk-of-ranks\n"
    }
    assert service.ports == ()
    assert "/services/chat/rank-served" in service.unit_text  # no other file records the serving
    (service,) = head.services
    secrets = secrets_of(head.plan, KEYS)
    assert secrets[service.secrets].value == f"VLLM_API_KEY={ENGINE}\n"
    assert "sk-of-ranks" in secrets[service.rank_secrets].value
    assert "sk-of-ranks" not in service.record


def test_the_address_for_all_models_lists_only_the_head() -> None:
    hosts = {"spark-1": {**data(), "address": {}}, "spark-2": data()}
    plans = [item.plan for item in desired(hosts).values()]
    assert [list(pool.services) for pool in planned_pools(plans)] == [["spark-1"]]
    assert with_others("spark-1", hosts) == frozenset()


@pytest.mark.parametrize("number", [0, 1])
def test_the_unit_of_a_rank_is_sandboxed_like_other_units(tmp_path: Path, number: int) -> None:
    unit = list(pair().values())[number].services[0].unit_text
    assert systemd.exposure(tmp_path, "sparkwright-chat.service", unit) <= 2.5
    assert systemd.faults(tmp_path, "sparkwright-chat.service", unit) == []
    result = systemd.settings(unit)
    assert result["Restart"] == ["always"]
    assert result["RestrictAddressFamilies"] == ["AF_UNIX AF_INET"]
    first = [item for item in result["ExecStartPre"] if "rank.py close" in item]
    assert first[0].startswith("+")  # no '-': a failure stops the start


@pytest.mark.parametrize(("current", "rank", "refused"), [
    ("9b1885b1ab26", False, ["no-rank"]), ("9b1885b1ab26", True, []), (None, False, []),
])  # fmt: skip
def test_a_follower_is_refused_if_its_host_serves_without_a_rank(
    current: str | None, rank: bool, refused: list[str]
) -> None:
    """The head would wait for the follower: this happened with two GPUs whose replicas became
    ranks."""
    state = ServiceState(current=current, rank=rank)
    observed = probe(services={"chat": encode(state)})
    for host, row in pair().items():
        faults = [finding.id for finding in judge(row, observed, observed.time)]
        expected = refused if host == "spark-2" else []
        assert [name for name in faults if name == "no-rank"] == expected
