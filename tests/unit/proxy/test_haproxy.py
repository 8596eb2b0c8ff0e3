"""The gateway's text: what is rendered, what is refused, and what HAProxy's answers mean."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import Any

import pytest

from sparkwright.config.secrets import Secret
from sparkwright.engines import client_routes
from sparkwright.findings.user_error import UserError
from sparkwright.host.proxy import runtime_api
from sparkwright.host.proxy.runtime_api import (
    PROCESSES,
    SERVERS,
    ServerState,
    kept,
    server_states,
    workers,
)
from sparkwright.proxy.haproxy import (
    Proxies,
    Proxy,
    Replica,
    kept_servers,
    key_map,
    render_proxies,
)

SPARK_1 = Replica("spark-1", "192.168.1.11", 8000, health_port=9100)
SPARK_2 = Replica("spark-2", "spark-2.local", 8000, health_port=9100)
QWEN = Proxy("qwen36", 8080, (SPARK_1, SPARK_2), health_path="/generates")
GATEWAY = Proxies((QWEN,))


def lines(text: str, start: str) -> list[str]:
    """The lines that begin so, without their indentation."""
    return [line.strip() for line in text.splitlines() if line.strip().startswith(start)]


def config(**changes: Any) -> str:
    """The configuration of a gateway that differs so."""
    return render_proxies(replace(GATEWAY, **changes)).config


def test_a_door_is_a_frontend_and_a_backend() -> None:
    text = config()
    assert lines(text, "frontend") == ["frontend door-qwen36"]
    assert lines(text, "bind") == ["bind *:8080 proto h1"]
    assert lines(text, "backend") == ["backend qwen36", "backend stay-qwen36"]
    assert lines(text, "server ") == [
        "server spark-1 192.168.1.11:8000 check port 9100",
        "server spark-2 spark-2.local:8000 check port 9100",
        "server stay 127.0.0.1:1",
    ]
    assert lines(text, "http-check send") == ["http-check send meth GET uri /generates"]
    assert lines(text, "balance") == ["balance leastconn"]


def test_one_replica_is_guarded_by_the_same_rules() -> None:
    alone = config(proxies=(replace(QWEN, replicas=(SPARK_1,)),))
    assert lines(alone, "http-request") == lines(config(), "http-request")
    assert lines(alone, "server ") == [
        "server spark-1 192.168.1.11:8000 check port 9100",
        "server stay 127.0.0.1:1",
    ]


def test_every_replica_is_tried_before_a_request_fails() -> None:
    many = tuple(replace(SPARK_1, name=f"spark-{number}") for number in range(9))
    assert lines(config(), "retries") == ["retries 3"]
    assert lines(config(proxies=(replace(QWEN, replicas=many),)), "retries") == ["retries 9"]


def test_every_service_has_a_port_and_rules_of_its_own() -> None:
    gemma = Proxy("gemma4", 8081, (replace(SPARK_1, port=8001),))
    text = config(proxies=(QWEN, gemma))
    assert lines(text, "bind") == ["bind *:8080 proto h1", "bind *:8081 proto h1"]
    assert lines(text, "http-check send")[1] == "http-check send meth GET uri /health"
    for rule in ("http_auth_bearer", "deny_status", "disable-l7-retry", "acl plain"):
        assert text.count(rule) in (0, 2), rule
    assert lines(text, "acl served nbsrv") == [
        "acl served nbsrv(qwen36) gt 0",
        "acl served nbsrv(gemma4) gt 0",
    ]


def test_routes_are_compared_as_bytes() -> None:
    text = config()
    compared = " ".join(lines(text, "acl get path -m str") + lines(text, "acl post path -m str"))
    for method, path in client_routes():
        known = f" {path}" in compared
        assert known is ("{" not in path), (method, path)
    assert lines(text, "acl get path -m reg") == [
        "acl get path -m reg ^/v1/responses/[A-Za-z0-9_-]+$"
    ]
    assert lines(text, "acl post path -m reg") == [
        "acl post path -m reg ^/v1/responses/[A-Za-z0-9_-]+/cancel$"
    ]
    assert "path_beg" not in text


def test_nothing_that_changes_a_server_is_a_route() -> None:
    assert not [path for _, path in client_routes() if "lora" in path]
    others = {route for route in client_routes() if not route[1].startswith("/v1/")}
    assert others == {("GET", "/metrics"), ("POST", "/tokenize"), ("POST", "/detokenize")}


def test_the_key_is_asked_for_before_anything_is_passed_on() -> None:
    rules = lines(config(), "http-request")
    (name,) = [number for number, rule in enumerate(rules) if "http_auth_bearer" in rule]
    assert rules[name].endswith(
        "(txn.key) http_auth_bearer,sha2(256),hex,map_str(/opt/sparkwright/gateway/keys.map)"
    )
    (key,) = [number for number, rule in enumerate(rules) if "status 401" in rule]
    assert rules[key].endswith("unless { var(txn.key) -m found }")
    assert sum("var(txn.key)" in rule for rule in rules[:key]) == key - name
    # Before it only what HAProxy answers itself.
    assert all("return " in rule or "set-log-level" in rule for rule in rules[:name])
    assert rules[-1] == "http-request lua.wait_for_server qwen36 30 unless served"


def test_keys_are_kept_as_hashes() -> None:
    key = Secret("sk-0123456789abcdef")
    other = Secret("sk-another-0123456")
    digest = hashlib.sha256(b"sk-0123456789abcdef").hexdigest().upper()
    assert key_map({"default": [key]}) == f"{digest} default\n"
    lines = key_map({"default": [key, other], "openclaw": [Secret("sk-third-01234567")]})
    assert [line.split()[1] for line in lines.splitlines()] == ["default", "default", "openclaw"]
    assert key_map({"default": [], "openclaw": []}) == ""


def test_nothing_buffers_or_packs_a_stream() -> None:
    text = config()
    assert "compression" not in text
    assert "http-buffer-request" not in text
    assert lines(text, "filter") == []
    assert lines(text, "timeout server") == ["timeout server 7200s"]
    assert lines(config(idle_seconds=60), "timeout tunnel") == ["timeout tunnel 60s"]


def test_sockets_are_for_root_alone() -> None:
    files = render_proxies(GATEWAY)
    assert "stats socket /run/sparkwright-gateway/admin.sock mode 600 level admin" in files.config
    assert "-S /run/sparkwright-gateway/master.sock,mode,600 " in files.unit
    assert "RuntimeDirectory=sparkwright-gateway\nRuntimeDirectoryMode=0700\n" in files.unit


def test_the_unit_starts_a_haproxy_of_its_own() -> None:
    unit = render_proxies(GATEWAY).unit
    assert lines(unit, "ExecStart=") == [
        "ExecStart=/usr/sbin/haproxy -Ws -db -S /run/sparkwright-gateway/master.sock,mode,600 "
        "-f /opt/sparkwright/gateway/haproxy.cfg"
    ]
    assert lines(unit, "ExecReload=") == [
        "ExecReload=/usr/sbin/haproxy -c -q -f /opt/sparkwright/gateway/haproxy.cfg",
        "ExecReload=/bin/kill -USR2 $MAINPID",
    ]
    assert "haproxy.service" not in unit


def test_the_same_gateway_gives_the_same_files() -> None:
    assert render_proxies(GATEWAY) == render_proxies(replace(GATEWAY))


def test_ipv6_addresses_are_written_as_haproxy_reads_them() -> None:
    door = replace(QWEN, bind="::", replicas=(replace(SPARK_1, address="fd00::11"),))
    text = config(proxies=(door,))
    assert lines(text, "bind") == ["bind [::]:8080 proto h1"]
    assert lines(text, "server ") == [
        "server spark-1 [fd00::11]:8000 check port 9100",
        "server stay 127.0.0.1:1",
    ]


@pytest.mark.parametrize(
    ("gateway", "what"),
    [
        (Proxies(()), "it has no proxy"),
        (Proxies((QWEN, QWEN)), "proxy qwen36 is there 2 times"),
        (Proxies((QWEN, replace(QWEN, name="b"))), "port 8080 is there 2 times"),
        (Proxies((replace(QWEN, name="a b"),)), "'a b' is no name"),
        (Proxies((replace(QWEN, name="a\nglobal"),)), "is no name"),
        (Proxies((replace(QWEN, name=""),)), "'' is no name"),
        (Proxies((replace(QWEN, port=0),)), "0 is no port"),
        (Proxies((replace(QWEN, bind="a b"),)), "'a b' is no address"),
        (Proxies((replace(QWEN, bind="unix@/tmp/x"),)), "is no address"),
        (Proxies((replace(QWEN, health_path="/x if TRUE"),)), "is no path"),
        (Proxies((replace(QWEN, health_path="health"),)), "'health' is no path"),
        (Proxies((replace(QWEN, replicas=()),)), "there is no replica behind it"),
        (Proxies((replace(QWEN, replicas=(SPARK_1, SPARK_1)),)), "replica spark-1 is there 2"),
        (Proxies((replace(QWEN, replicas=(replace(SPARK_1, name="#"),)),)), "'#' is no name"),
        (Proxies((replace(QWEN, replicas=(replace(SPARK_1, address=""),)),)), "'' is no address"),
        (Proxies((replace(QWEN, replicas=(replace(SPARK_1, port=70000),)),)), "70000 is no port"),
        (Proxies((replace(QWEN, replicas=(replace(SPARK_1, health_port=-1),)),)), "-1 is no port"),
        (replace(GATEWAY, home="/tmp/a b"), "'/tmp/a b' is no path"),
        (replace(GATEWAY, user="me and you"), "'me and you' is no name"),
        (replace(GATEWAY, wait_seconds=-1), "-1 is no time"),
        (replace(GATEWAY, check_milliseconds=0), "0 is no time"),
    ],
)
def test_what_would_not_survive_is_refused(gateway: Proxies, what: str) -> None:
    with pytest.raises(UserError, match=re.escape(what)):
        render_proxies(gateway)


def test_all_problems_are_said_at_once() -> None:
    bad = replace(QWEN, port=0, bind="?", replicas=(replace(SPARK_1, name="?", port=0),))
    with pytest.raises(UserError) as caught:
        render_proxies(Proxies((bad,)))
    assert len(caught.value.findings) == 4


# --- The runtime API: captures of HAProxy 2.6.12, fewer columns ---------------------------------

STAT = """\
# pxname,svname,qcur,qmax,scur,smax,slim,stot,status,weight
qwen36,spark-1,0,0,2,3,,7,DRAIN,1
qwen36,spark-2,0,0,0,0,,0,UP 1/2,1

"""

PROC = """\
#<PID>          <type>          <reloads>       <uptime>        <version>      
32553           master          1 [failed: 0]   0d00h00m09s     2.6.12-1+deb12u4
# workers
32742           worker          0               0d00h00m01s     2.6.12-1+deb12u4
# old workers
32582           worker          1               0d00h00m09s     2.6.12-1+deb12u4
# programs

"""

STATES = """\
1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port
3 qwen36 1 spark-1 192.168.1.11 2 8 1 1 0 15 3 3 6 0 0 0 - 8000 - 0 9100 - - 8000
3 qwen36 2 spark-2 192.168.1.12 0 0 1 1 8 8 2 0 6 0 0 0 spark-2.local 8000 - 0 9100 - - 8000

"""  # noqa: E501


def test_servers_are_read() -> None:
    assert server_states(STAT) == {
        ("qwen36", "spark-1"): ServerState("DRAIN", 2),
        ("qwen36", "spark-2"): ServerState("UP 1/2", 0),
    }
    assert server_states("\n") == {}


def test_former_workers_are_workers_and_the_master_is_none() -> None:
    assert workers(PROC) == [32742, 32582]


def test_requests_are_counted_over_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    former = STAT.replace("spark-1,0,0,2", "spark-1,0,0,5").replace("spark-2,", "gone,")
    answers = {PROCESSES: PROC, f"@!32742 {SERVERS}": STAT, f"@!32582 {SERVERS}": former}
    monkeypatch.setattr(runtime_api, "ask", lambda _, line: answers[line])
    assert runtime_api.busy("master", "qwen36", "spark-1") == 7
    assert runtime_api.busy("master", "qwen36", "spark-2") == 0


def test_a_reload_keeps_the_states_of_replicas_that_stay() -> None:
    assert kept(STATES, kept_servers(GATEWAY)) == STATES.rstrip("\n") + "\n"


@pytest.mark.parametrize(
    "changed",
    [
        replace(SPARK_1, port=8001),
        replace(SPARK_1, health_port=9101),
        replace(SPARK_1, address="192.168.1.13"),
        replace(SPARK_1, name="spark-3"),
    ],
)
def test_a_reload_forgets_the_states_of_others(changed: Replica) -> None:
    moved = Proxies((replace(QWEN, replicas=(changed, SPARK_2)),))
    stay = kept(STATES, kept_servers(moved)).splitlines()
    assert stay[0] == "1"
    assert [line.split()[3] for line in stay[2:]] == ["spark-2"]
