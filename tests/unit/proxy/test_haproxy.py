"""HAProxy's configuration: rendered text, refused values, and meanings of HAProxy's answers."""

import hashlib
import re
from dataclasses import replace
from typing import Any

import pytest

from sparkwright.config.secrets import Secret
from sparkwright.engines import client_routes
from sparkwright.findings.user_error import UserError
from sparkwright.host.proxy import place
from sparkwright.host.proxy import place as places
from sparkwright.proxy.haproxy import Proxies, Proxy, Replica, kept_servers, key_map, render_proxies
from tests.tables import Tables

cases = Tables(__file__)

SPARK_1 = Replica("spark-1", "192.168.1.11", 8000, health_port=9100)
SPARK_2 = Replica("spark-2", "spark-2.local", 8000, health_port=9100)
QWEN = Proxy("qwen36", 8080, (SPARK_1, SPARK_2), health_path="/generates")
GATEWAY = Proxies((QWEN,))


def lines(text: str, start: str) -> list[str]:
    """Lines with this beginning, without their indentation."""
    return [line.strip() for line in text.splitlines() if line.strip().startswith(start)]


def config(**changes: Any) -> str:
    """The configuration of a proxy with these differences."""
    return render_proxies(replace(GATEWAY, **changes)).config


def test_no_route_changes_a_server() -> None:
    assert not [path for _, path in client_routes() if "lora" in path]
    others = {route for route in client_routes() if not route[1].startswith("/v1/")}
    posts = {("POST", path) for path in ("/tokenize", "/detokenize", "/rerank", "/score")}
    assert others == {("GET", "/metrics"), *posts}


def test_keys_are_kept_as_hashes() -> None:
    key = Secret("sk-0123456789abcdef")
    other = Secret("sk-another-0123456")
    digest = hashlib.sha256(b"sk-0123456789abcdef").hexdigest().upper()
    assert key_map({"default": [key]}) == f"{digest} default\n"
    lines = key_map({"default": [key, other], "openclaw": [Secret("sk-third-01234567")]})
    assert [line.split()[1] for line in lines.splitlines()] == ["default", "default", "openclaw"]
    assert key_map({"default": [], "openclaw": []}) == ""


def test_a_stream_may_be_idle_for_the_configured_time() -> None:
    assert lines(config(), "timeout server") == ["timeout server 7200s"]
    assert lines(config(idle_seconds=60), "timeout tunnel") == ["timeout tunnel 60s"]


@cases("part", "changes", "reason")
def test_unsafe_names_are_refused(part: str, changes: dict[str, Any], reason: str) -> None:
    if part == "replica":
        changes = {"replicas": (replace(SPARK_1, **changes),)}
    gateway = replace(GATEWAY, **changes) if part == "gateway" else None
    with pytest.raises(UserError, match=re.escape(reason)):
        render_proxies(gateway or Proxies((replace(QWEN, **changes),)))


@pytest.mark.parametrize(
    ("proxies", "reason"),
    [
        ((), "the host has no proxy"),
        ((QWEN, QWEN), "proxy qwen36 appears 2 times"),
        ((QWEN, replace(QWEN, name="b")), "port 8080 appears 2 times"),
        ((replace(QWEN, replicas=()),), "the pool has no replica"),
        ((replace(QWEN, replicas=(SPARK_1, SPARK_1)),), "replica spark-1 appears 2"),
    ],
)
def test_a_proxy_with_missing_or_duplicate_parts_is_refused(
    proxies: tuple[Proxy, ...], reason: str
) -> None:
    with pytest.raises(UserError, match=re.escape(reason)):
        render_proxies(Proxies(proxies))


def test_all_problems_are_reported_at_once() -> None:
    bad = replace(QWEN, port=0, bind="?", replicas=(replace(SPARK_1, name="?", port=0),))
    with pytest.raises(UserError) as caught:
        render_proxies(Proxies((bad,)))
    assert len(caught.value.findings) == 4


# --- The runtime API: captures of HAProxy 2.6.12, fewer columns ---------------------------------

STAT = cases.data["STAT"]

PROC = cases.data["PROC"]

STATES = cases.data["STATES"]


def test_states_of_servers_are_read() -> None:
    assert places.server_states(STAT) == {
        ("qwen36", "spark-1"): places.ServerState("DRAIN", 2),
        ("qwen36", "spark-2"): places.ServerState("UP 1/2", 0),
    }
    assert places.server_states("\n") == {}


def test_former_workers_are_listed_without_the_master() -> None:
    assert places.workers(PROC) == [32742, 32582]


def test_requests_are_counted_over_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    former = STAT.replace("spark-1,0,0,2", "spark-1,0,0,5").replace("spark-2,", "gone,")
    answers = {
        places.PROCESSES: PROC,
        f"@!32742 {places.SERVERS}": STAT,
        f"@!32582 {places.SERVERS}": former,
    }
    monkeypatch.setattr(place, "ask", lambda _, line: answers[line])
    assert place.busy("master", "qwen36", "spark-1") == 7
    assert place.busy("master", "qwen36", "spark-2") == 0


def test_a_reload_keeps_the_states_of_replicas_that_stay() -> None:
    assert places.kept(STATES, kept_servers(GATEWAY)) == STATES.rstrip("\n") + "\n"


@cases("changes")
def test_a_reload_forgets_the_states_of_removed_replicas(changes: dict[str, Any]) -> None:
    moved = Proxies((replace(QWEN, replicas=(replace(SPARK_1, **changes), SPARK_2)),))
    stay = places.kept(STATES, kept_servers(moved)).splitlines()
    assert stay[0] == "1"
    assert [line.split()[3] for line in stay[2:]] == ["spark-2"]
