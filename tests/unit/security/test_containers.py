"""Code in a container gets no power over its host and no key, and its ports are closed."""

from typing import Any

import pytest

from sparkwright.catalog.containers import CAPABILITIES
from sparkwright.findings.user_error import UserError
from sparkwright.host.service import Service
from sparkwright.plan.service import render_service
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import alone, catalog, plan, resolution

cases = Tables(__file__)

HERETIC = "qwen36-35b-a3b-heretic-dflash"


def release(recipe: str = HERETIC, **settings: Any) -> Service:
    """A service's release, behind a proxy."""
    host = plan({"s": {"recipe": recipe, "proxy": True, **settings}})
    return render_service(host, host.services[0], resolution(host))


def container(recipe: str = HERETIC, **settings: Any) -> dict[str, Any]:
    """The service's container, as Compose reads it."""
    read: dict[str, Any] = safe_load(release(recipe, **settings).compose)["services"]["engine"]
    return read


@pytest.mark.parametrize("hardening", ["default", "strict"])
@pytest.mark.parametrize("recipe", sorted(alone()))
def test_no_container_has_power_over_its_host_or_shows_its_key(recipe: str, hardening: str) -> None:
    compose = release(recipe, hardening=hardening).compose
    assert "API_KEY" not in compose  # `docker inspect` can show no key
    result = safe_load(compose)["services"]["engine"]
    assert "env_file" not in result
    assert result["cap_drop"] == ["ALL"]
    assert result["security_opt"] == ["no-new-privileges:true"]
    assert result["pids_limit"] == 4096
    assert not result.keys() & {"privileged", "cap_add", "devices", "pid", "userns_mode", "user"}
    binds = [item for item in result["volumes"] if item["type"] == "bind"]
    writable = [bind["source"] for bind in binds if not bind.get("read_only")]
    # Only this service's container mounts the directory of the engine's compiled code.
    kept = "/opt/sparkwright/services/s/caches/current"
    socket = "/run/sparkwright-engines/s"
    assert writable == ([socket] if hardening == "strict" else [socket, kept])
    places = {item["source"] for item in result["volumes"] if item["type"] == "bind"} - {socket}
    assert all(position.startswith(("/opt/models/", "/opt/sparkwright/")) for position in places)
    # The container has only its own loopback network, and shares no memory.
    assert (result["network_mode"], result["ipc"]) == ("none", "private")
    assert "ports" not in result


def test_strict_hardening_removes_further_rights() -> None:
    result = container(hardening="strict")
    assert result["read_only"] is True
    assert result["shm_size"] == "16gb"
    places = [item["target"] for item in result["volumes"] if item["type"] == "volume"]
    assert places == ["/tmp", "/root/.cache", "/root/.config", "/root/.nv", "/root/.triton"]


@pytest.mark.parametrize("outgoing", [False, True])
@pytest.mark.parametrize("proxy", [False, True])
def test_a_containers_own_network_is_closed_except_opened_ports(
    proxy: bool, outgoing: bool
) -> None:
    rendered = release(proxy=proxy, outgoing=outgoing)
    text = safe_load(rendered.compose)
    result = text["services"]["engine"]
    assert ("ports" in result) is not proxy
    assert result.get("network_mode") == ("none" if proxy and not outgoing else None)
    rules = rendered.unit_text.count("/current/service_firewall.py close /")
    if proxy and not outgoing:
        assert (rules, "networks" in text) == (0, False)
        return
    options = text["networks"]["default"]["driver_opts"]
    assert options.pop("com.docker.network.bridge.name") == "sw-043a718774c5"
    assert bool(options) is not outgoing  # without an address of its host, no packet leaves
    assert (rules, rendered.bridge, rendered.outgoing) == (1, "sw-043a718774c5", outgoing)
    assert "PrivateNetwork=no" in rendered.unit_text  # the rules must apply to the host's network


def test_strict_hardening_discards_written_files_with_the_container() -> None:
    unit = release(hardening="strict").unit_text
    assert "ExecStartPre=-/usr/bin/docker rm --force --volumes sparkwright-s\n" in unit
    assert "down --timeout 60 --volumes\n" in unit


REASON = "seen to fail without it on spark-1"


def test_an_exception_is_rendered_with_its_reason() -> None:
    given = {"cap_add": ["IPC_LOCK"], "pids_limit": 8192, "reason": REASON}
    result = container(exceptions=given)
    assert (result["cap_drop"], result["cap_add"]) == (["ALL"], ["IPC_LOCK"])
    assert result["pids_limit"] == 8192
    assert REASON in release(exceptions=given).compose


def test_a_reason_cannot_break_out_of_its_comment() -> None:
    result = container(exceptions={"reason": "a reason\n    privileged: true\r\u2028 x"})
    assert "privileged" not in result


@cases("settings", "key", "why")
def test_a_setting_that_requests_access_to_the_host_is_refused(
    settings: dict[str, Any], key: str, why: str
) -> None:
    with pytest.raises(UserError) as raised:
        plan({"s": {"recipe": HERETIC, **settings}})
    (problem,) = raised.value.findings
    assert problem.subject.place.endswith(f": {key}")
    assert why in problem.observed


@pytest.mark.parametrize("over", [{"privileged": True}, {"exceptions": {"cap_add": ["SYS_ADMIN"]}}])
def test_a_recipe_that_requests_access_to_the_host_is_refused(over: dict[str, Any]) -> None:
    recipe = catalog().recipes[HERETIC]
    data = {**recipe.model_dump(), **over}
    if "exceptions" in over:
        data["exceptions"] = {**over["exceptions"], "reason": REASON}
    with pytest.raises(ValueError, match=r"root on the host|capability SYS_ADMIN"):
        type(recipe).model_validate(data)


def test_no_offered_capability_gives_access_to_the_host() -> None:
    assert set(CAPABILITIES) == {"IPC_LOCK", "SYS_NICE"}
