"""Proxies: their files, what of them is not as desired, and what the host is asked to do."""

import base64

import pytest

from sparkwright.findings.user_error import refusal
from sparkwright.host.proxy.pool import HEALTH_UNIT, UNIT
from sparkwright.operations import proxies
from tests.operations.harness import as_json, fake, run
from tests.operations.sites import BEHIND, ENGINE, KEY, KEYS, host_run, proxied, spark
from tests.unit.builders import probe

HOME = "/opt/sparkwright/gateway"
UNITS = "/etc/systemd/system"
ONE = host_run(spark(), BEHIND)
PROXY, FILES = ONE.proxies, ONE.proxy_files
ASKED = proxies.request_of(PROXY, FILES)
CONFIG = f"{HOME}/haproxy.cfg"
OTHER = {"command": "vllm", "cgroup": "/system.slice/docker-1.scope"}


def test_its_files() -> None:
    modes = {path: mode for path, (_, mode) in FILES.items()}
    assert modes[CONFIG] == 0o644
    assert modes[f"{HOME}/keys.map"] == modes[f"{HOME}/engine.map"] == 0o600
    assert {f"{UNITS}/{UNIT}", f"{UNITS}/{HEALTH_UNIT}", f"{HOME}/health.py"} <= set(modes)
    # HAProxy knows the key's hash alone.
    assert not any(KEY.value in text for text, _ in FILES.values())
    # The engine's is in the one file that HAProxy takes it from.
    assert [path for path, (text, _) in FILES.items() if ENGINE.value in text] == [
        f"{HOME}/engine.map"
    ]
    assert proxies.files_of(None, KEYS, ONE.desired.plan) == {}
    assert (ASKED.ports, ASKED.units) == ((8000,), (UNIT, HEALTH_UNIT))
    assert ASKED.packages == ("haproxy",)


def test_what_the_host_is_asked_for() -> None:
    host = fake(probe(), ASKED, configure=["started the proxy"])
    ran = run(host, proxies.serving, PROXY, FILES, execute=True)
    request = host.request("configure")
    assert request["files"] == as_json(FILES)
    assert (request["config"], request["start"]) == (CONFIG, True)
    assert host.asked[-1].hidden
    assert ["qwen36", "self", "-", "0", "0", "0"] in request["keep"]
    assert ran.memory.changes == ["started the proxy"]
    assert ran.memory.stale
    host = fake(probe(ports={8000: OTHER}), ASKED, configure=[])
    run(host, proxies.serving, PROXY, FILES, execute=True)
    assert host.request("configure")["start"] is False


@pytest.mark.parametrize("brought", [{}, {"haproxy_2.8.5-1_arm64.deb": b"deb"}])
def test_haproxy_is_installed_before_anything_is_touched(brought: dict[str, bytes]) -> None:
    missing = {"packages": {"haproxy": {"candidate": "2.8.5"}}}
    host = fake(probe(**missing), ASKED, install=["installed HAProxy"])
    how = {"http_proxy": "http://proxy:3128"}
    ran = run(host, proxies.installed, brought=lambda _: brought, environment=how, execute=True)
    packed = {name: base64.b64encode(data).decode() for name, data in brought.items()}
    assert host.request("install") == {"packages": packed, "environment": how}
    assert ran.memory.changes == ["installed HAProxy"]
    assert ran.memory.stale


def test_haproxy_that_is_not_wanted_is_left() -> None:
    host = fake(probe(packages={}))
    assert (run(host, proxies.installed, wanted=False).commands, host.asked) == ([], [])


def test_a_package_that_is_not_the_locked_one_fails_before_the_host_is_asked() -> None:
    def brought(_: str) -> dict[str, bytes]:
        raise refusal("my-bundle/packages/x.deb", "is not the locked one", "again")

    host = fake(probe(packages={"haproxy": {}}), ASKED)
    ran = run(host, proxies.installed, brought=brought, execute=True)
    assert not ran.well
    assert "is not the locked one" in (ran.memory.failure or "") + "".join(host.lines)
    assert host.programs == ["lock"]


def test_taking_it_away_names_where_it_would_be() -> None:
    host = fake(probe(**proxied(ONE)), configure=["removed the proxy"])
    host.memory.services_root = "/srv/sw"
    run(host, proxies.serving, None, {}, execute=True)
    request = host.request("configure")
    assert request["files"] == {}
    assert request["config"] == "/srv/sw/gateway/haproxy.cfg"


def test_a_switch_takes_the_proxies_with_it() -> None:
    root = "/opt/sparkwright"
    assert proxies.switched(PROXY, FILES, probe(**proxied(ONE)), root) is None
    result = proxies.switched(PROXY, FILES, probe(), root)
    assert result is not None
    assert result.files == FILES
    # Also what only the plan before had: going back takes it up again.
    assert set(FILES) <= set(result.managed)
    assert f"{UNITS}/{HEALTH_UNIT}" in result.managed
    gone = proxies.switched(None, {}, probe(**proxied(ONE)), root)
    assert gone is not None
    assert (gone.files, gone.managed) == ({}, result.managed)
