"""Four keys at one address with TLS: rights, limits, a roll-out, a service that wakes, and
usage.
"""

import http.client
import json
import os
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.bad_tags import NEW
from tests.fleet.proxy_clients import BALANCER
from tests.fleet.security.test_tls import trusting
from tests.fleet.site import Site, bare, inside, ssh, until
from tests.fleet.traffic import Load, Used, used

INVENTORY = "inventory/address.py"
#: Seconds of load beside the roll-out; ten minutes for a proof of endurance.
SECONDS = int(os.environ.get("SPARKWRIGHT_TEST_SECONDS", "0"))
HOSTS = """
_SHARE = {"gpu_memory_utilization": 0.42, "max_model_len": 8192}
_RECIPE = {"recipe": "qwen36-35b-a3b-heretic-dflash", "arguments": _SHARE}
for _, _data in sparks:
    _data["services"] = {"qwen36": {**_RECIPE, "port": 8000}}
for _name, _port in (("chat", 8001), ("writer", 8002)):
    sparks[1][1]["services"][_name] = {
        **_RECIPE, "port": _port, "served_names": [_name], "exclusive": "evening",
        "activate": "on-request",
    }
sparks[1][1]["activation"] = {"stay_seconds": 1, "wait_seconds": 120}
sparks[0][1]["services"]["vectors"] = {
    **_RECIPE, "port": 8003, "served_names": ["vectors"],
    "arguments": {**_SHARE, "runner": "pooling", "speculative_config": None},
}
rtx50 = []
gateways = [_host("hopper-1", "10.213.77.14")]
gateways[0][1].update(services={}, address={"port": 8080, "open_webui": {"tag": "lab"}})
"""
ATTACKS = Path(__file__).with_name("attacks.py")
_HEALTH = "curl -sko /dev/null -w '%{http_code}' https://127.0.0.1:8000/health"
KEYS = {
    "laptop": {},
    "family": {"models": ["qwen36-fast"]},
    "writers": {"models": ["writer", "chat"]},
    "guest": {"models": ["qwen36-fast"], "requests_minute": 2},
    "open-webui": {},
}


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[Site]:
    """Three models on two hosts behind the address of a third host; one model sleeps."""
    site.power_on()
    site.repair()
    inventory = (site.folder / "inventory/virtual.py").read_text()
    (site.folder / INVENTORY).write_text(inventory + HOSTS)
    site.edit("group_data/all.py", '# tls = "own"', 'tls = "own"')
    with (site.folder / "group_data/all.py").open("a") as settings:
        settings.write(f"keys = {KEYS!r}\n")
    site.rollout(soak_seconds=8, notice_seconds=7)
    ssh("hopper-1", "sudo rm -rf /var/lib/sparkwright-models")  # remove the usage of other tests
    try:
        site.deploy(inventory=INVENTORY)
        yield site
    finally:
        for host in ("spark-1", "spark-2", "hopper-1"):
            bare(host)
        site.repair()


def _key(site: Site, name: str) -> str:
    return (site.folder / ".sparkwright/keys" / name).read_text().strip()


def _send(
    context: ssl.SSLContext, port: int, path: str, body: Any = None, key: str = ""
) -> tuple[int, str]:
    """Status and text of an answer at the address's host; a request without a body is a GET."""
    connection = http.client.HTTPSConnection(BALANCER, port, timeout=150, context=context)
    headers = {"Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    with closing(connection):
        connection.request("POST" if body else "GET", path, body and json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def _ask(
    site: Site, context: ssl.SSLContext, key: str, model: str, path: str = "completions"
) -> tuple[int, Any]:
    """Status and body of an answer at the address."""
    prompt = {"input": "1 2 3"} if path == "embeddings" else {"prompt": "1 2 3", "max_tokens": 4}
    status, text = _send(context, 8080, f"/v1/{path}", {"model": model, **prompt}, _key(site, key))
    return status, json.loads(text)


def _a_replica_dies(*loads: Load, streams: bool) -> None:
    """Kill an engine, and await its return. A stream that has begun can't be repeated."""
    for load in loads:
        load.streams = streams
    time.sleep(5)
    ssh("spark-1", "sudo docker kill sparkwright-qwen36")
    served = loads[0].served
    until(lambda: loads[0].served > served + 50, "answers of the other replica", 120)
    for load in loads:
        load.streams = True
    until(lambda: "200" in ssh("spark-1", _HEALTH), "the replica is back", 180)


@pytest.mark.timeout(600 + 2 * SECONDS)
def test_no_request_is_lost_and_each_request_is_counted(address: Site) -> None:
    context, sent, begun = trusting(address), list[tuple[str, str, Used]](), time.monotonic()
    statuses = Counter[int]()
    loads = {
        name: Load(BALANCER, 8080, _key(address, name), workers=2, context=context, counting=True)
        for name in ("laptop", "family")
    }

    def asked(key: str, model: str, path: str = "completions") -> int:
        status, body = _ask(address, context, key, model, path)
        if status == 200:
            sent.append((key, model, used(body)))
        return status

    with loads["laptop"], loads["family"]:
        address.deploy("--data", f"image_tag={NEW}", inventory=INVENTORY)
        end = time.monotonic() + SECONDS
        if SECONDS:
            _a_replica_dies(*loads.values(), streams=False)
        while True:
            # The answer comes from the service that the request has started, on another host; the
            # other model goes to sleep.
            for model in ("writer", "chat"):
                assert asked("writers", model) == 200
            assert asked("laptop", "vectors", "embeddings") == 200
            statuses.update(asked("guest", "qwen36-fast") for _ in range(6))
            assert asked("family", "writer") == 404
            if time.monotonic() > end:
                break
            time.sleep(10)
    assert set(statuses) == {200, 429}
    assert statuses[200] <= 2 * (2 + (time.monotonic() - begun) // 60)
    for name, each in loads.items():
        assert each.faults == []
        assert each.served > 50
        assert len(each.answers) == each.served
        sent += [(name, "qwen36-fast", answer) for answer in each.answers]
    expected = Counter[tuple[str, ...]]()
    for key, model, (day, tokens_in, tokens_out) in sent:
        counts = {"requests": 1, "tokens_in": tokens_in, "tokens_out": tokens_out}
        expected.update({(day, key, model, name): count for name, count in counts.items()})
    time.sleep(5)  # the program writes counts every two seconds
    rows = json.loads(address.call("usage", INVENTORY, "--json").stdout)
    columns = ("requests", "tokens_in", "tokens_out", "failed", "cut")
    assert expected == Counter({
        (row["day"], row["key"], row["model"], name): row[name] for row in rows for name in columns
    })  # fmt: skip


@pytest.mark.timeout(600)
def test_a_dying_replica_interrupts_only_its_own_streams(address: Site) -> None:
    with Load(BALANCER, 8080, _key(address, "laptop"), context=trusting(address)) as load:
        _a_replica_dies(load, streams=True)
    # Three of six workers stream. The other replica answers all requests that had no answer yet.
    assert len(load.faults) <= 3, load.faults
    assert all(fault.startswith("stream") for fault in load.faults), load.faults


@pytest.mark.timeout(300)
def test_attacks_without_a_key_disturb_no_client_of_the_address(address: Site) -> None:
    ssh("rtx-1", f"cat > /tmp/attacks.py <<'END'\n{ATTACKS.read_text()}\nEND")
    key, context = _key(address, "laptop"), trusting(address)
    command = ("python3", "/tmp/attacks.py", f"{BALANCER}:8080", "60")
    with ThreadPoolExecutor(1) as pool, Load(BALANCER, 8080, key, context=context) as load:
        counts = json.loads(pool.submit(inside, "rtx-1", *command).result(180))
    assert load.faults == []
    assert load.served > 50
    assert load.longest < 30
    assert counts["half"] > 1024  # above the limit of one address without a key
    assert min(counts["heads"], counts["huge"]) >= 16
    for unit in ("sparkwright-gateway", "sparkwright-models"):
        assert inside("hopper-1", "systemctl", "show", "-P", "NRestarts", unit) == "0", unit


def test_the_page_is_served_over_tls_and_chats_with_its_own_key(address: Site) -> None:
    page = partial(_send, trusting(address), 3000)
    until(lambda: page("/")[0] == 200, "Open WebUI is up")
    assert "Open WebUI" in page("/")[1]
    chat = {"model": "qwen36-fast", "messages": [{"role": "user", "content": "1 2 3"}]}
    status, text = page("/api/chat/completions", chat)
    assert (status, bool(json.loads(text).get("choices"))) == (200, True), text
    time.sleep(5)
    rows = json.loads(address.call("usage", INVENTORY, "--json").stdout)
    assert [row["requests"] for row in rows if row["key"] == "open-webui"] == [1]
    unit = "sparkwright-open-webui"
    seen = (
        f"sudo docker inspect {unit}; sudo journalctl -u {unit} -u sparkwright-gateway --no-pager"
    )
    assert _key(address, "open-webui") not in ssh("hopper-1", seen)
    # Only HAProxy can open the program's socket, and the program listens on no port.
    assert ssh("hopper-1", f"sudo stat -c %a:%G /run/{unit}") == "750:haproxy"


def test_a_second_deploy_changes_nothing(address: Site) -> None:
    address.deploy("--data", f"image_tag={NEW}", inventory=INVENTORY)
    assert address.deploy("--data", f"image_tag={NEW}", inventory=INVENTORY).changed == set()


def test_a_changed_socket_is_in_force_after_a_deploy(address: Site) -> None:
    unit, service = "sparkwright-models.socket", "sparkwright-models.service"
    ssh("hopper-1", f"sudo sed -i s/^SocketMode=.*/SocketMode=0600/ /etc/systemd/system/{unit};"
        f" sudo systemctl daemon-reload; sudo systemctl stop {service};"
        f" sudo systemctl restart {unit}; sudo systemctl start {service}")  # fmt: skip
    mode = "sudo stat -c %a /run/sparkwright-models/door.sock"
    assert ssh("hopper-1", mode) == "600"
    assert "hopper-1" in address.deploy("--data", f"image_tag={NEW}", inventory=INVENTORY).changed
    assert ssh("hopper-1", mode) == "660"
    assert _ask(address, trusting(address), "laptop", "qwen36-fast")[0] == 200


def test_a_removed_address_keeps_the_usage_of_keys(address: Site) -> None:
    removal = ("remove", INVENTORY, "--limit", "hopper-1", "--yes")
    text = address.sparkwright(*removal)
    assert "hopper-1: left /var/lib/sparkwright-models/usage.db: the use of API keys" in text
    assert "hopper-1: left /var/lib/sparkwright-open-webui: accounts, chats and files" in text
    left = "ls /etc/systemd/system/sparkwright-models* /etc/sysusers.d/sparkwright*"
    assert ssh("hopper-1", f"{left}; id sparkwright-models; true") == ""
    assert ssh("hopper-1", "sudo stat -c %U /var/lib/sparkwright-models/usage.db") == "root"
