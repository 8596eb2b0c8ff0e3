"""Proxies: their files and their certificate, differences from the plan, and requests to the
host.
"""

from pathlib import Path

import pytest

from sparkwright.host.proxy.pool import HEALTH_UNIT
from sparkwright.operations import proxies
from sparkwright.run.state import HostRun
from tests.operations.harness import fake, run
from tests.operations.sites import BEHIND, host_run, proxied, spark
from tests.unit.builders import probe

UNITS = "/etc/systemd/system"
ONE = host_run(spark(), BEHIND)
PROXY, FILES = ONE.proxies, ONE.proxy_files
ASKED = proxies.request_of(PROXY, FILES)


def test_haproxy_is_installed_before_any_other_change() -> None:
    missing = {"packages": {"haproxy": {"candidate": "2.8.5"}}}
    host = fake(probe(**missing), ASKED, install=["installed HAProxy"])
    how = {"http_proxy": "http://proxy:3128"}
    ran = run(host, proxies.installed, environment=how, execute=True)
    assert host.request("install") == how
    assert ran.memory.changes == ["installed HAProxy"]
    assert ran.memory.stale


def test_unneeded_haproxy_is_left_installed() -> None:
    host = fake(probe(packages={}))
    assert (run(host, proxies.installed, wanted=False).commands, host.asked) == ([], [])


def test_removal_of_the_proxy_names_its_paths() -> None:
    host = fake(probe(**proxied(ONE)), configure=["removed the proxy"])
    host.memory.services_root = "/srv/sw"
    run(host, proxies.serving, None, {}, execute=True)
    request = host.request("configure")
    assert request["files"] == {}
    assert request["config"] == "/srv/sw/gateway/haproxy.cfg"


def test_a_switch_changes_the_proxies() -> None:
    root = "/opt/sparkwright"
    assert proxies.switched(PROXY, FILES, probe(**proxied(ONE)), root) is None
    result = proxies.switched(PROXY, FILES, probe(), root)
    assert result is not None
    assert result.files == FILES
    # A rollback also needs the paths of the earlier plan.
    assert set(FILES) <= set(result.managed)
    assert f"{UNITS}/{HEALTH_UNIT}" in result.managed
    gone = proxies.switched(None, {}, probe(**proxied(ONE)), root)
    assert gone is not None
    assert (gone.files, gone.managed) == ({}, result.managed)


PEM = "/opt/sparkwright/gateway/tls/host.pem"


@pytest.fixture
def secured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostRun:
    """A host whose proxy serves https."""
    monkeypatch.chdir(tmp_path)
    return host_run(spark(), BEHIND, tls="own")


def test_diff_and_arguments_do_not_show_the_private_key(secured: HostRun) -> None:
    host = fake(probe(), proxies.request_of(secured.proxies, secured.proxy_files))
    host.state.config.DIFF = True
    host.answers["observe"] = probe()
    run(host, proxies.serving, secured.proxies, secured.proxy_files)
    assert f"would write {PEM}" in "\n".join(host.lines)
    assert PEM not in host.request("observe")["texts"]
    assert not any("BEGIN" in line for line in host.lines)
    # pyinfra's own debugging output shows an operation's arguments.
    for shown in (str(secured.proxy_files), repr(secured.proxies), repr(secured)):
        assert "BEGIN" not in shown


def test_an_exposed_or_expired_certificate_is_written_again(secured: HostRun) -> None:
    seen = proxied(secured)
    assert proxies.pending(secured.proxies, secured.proxy_files, probe(**seen)) == []
    for state in ({**seen["files"][PEM], "mode": 0o644}, {**seen["files"][PEM], "sha256": "0"}):
        problems = probe(**{**seen, "files": {**seen["files"], PEM: state}})
        assert proxies.pending(secured.proxies, secured.proxy_files, problems) == [f"write {PEM}"]


def test_the_certificate_is_removed_when_tls_is_turned_off(secured: HostRun) -> None:
    clear = host_run(spark(), BEHIND)
    assert PEM in proxies.request_of(clear.proxies, clear.proxy_files).files
    seen = proxied(clear)
    seen["files"][PEM] = proxied(secured)["files"][PEM]
    result = proxies.pending(clear.proxies, clear.proxy_files, probe(**seen))
    assert result == [f"remove {PEM}"]
    back = proxies.switched(clear.proxies, clear.proxy_files, probe(**seen), "/opt/sparkwright")
    # A failed switch restores the certificate.
    assert back is not None
    assert PEM in back.managed
