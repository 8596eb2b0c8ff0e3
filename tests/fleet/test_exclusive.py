"""Three services of a group: changed by hand, by calendar and request, and rolled back."""

import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fleet.proxy_clients import status
from tests.fleet.site import Run, Site, inside, ssh, until
from tests.fleet.traffic import Load

HOST, ADDRESS = "spark-2", "10.213.77.12"
INVENTORY = "inventory/evening.py"
PORTS = {"chat": 8001, "coder": 8002, "writer": 8003}
#: Two services of a group and a service without a group, which share the memory of a Spark.
SERVICES = """
_SHARE = {{"arguments": {{"gpu_memory_utilization": 0.42, "max_model_len": 8192}}}}
_RECIPE = {{"recipe": "qwen36-35b-a3b-heretic-dflash", **_SHARE}}
sparks[1][1]["services"] = {{
    "qwen36": {{**_RECIPE, "port": 8000}},
    **{{
        name: {{**_RECIPE, "port": port, "served_names": [name], "exclusive": "evening"}}
        for name, port in {ports}.items()
    }},
}}
sparks[1][1].update({more})
"""


@dataclass
class Evening:
    """A host with an exclusive group, and the host's user."""

    site: Site

    def write(self, lines: str = "", **more: Any) -> None:
        """Write the inventory, with additional lines and settings of the host."""
        inventory = (self.site.folder / "inventory/virtual.py").read_text()
        text = inventory + SERVICES.format(ports=PORTS, more=repr(more))
        (self.site.folder / INVENTORY).write_text(text + lines)

    def deploy(self, lines: str = "", **more: Any) -> Run:
        self.write(lines, **more)
        return self.site.deploy("--limit", HOST, inventory=INVENTORY)

    def activate(self, service: str, *arguments: str, code: int = 0) -> str:
        arguments = ("activate", INVENTORY, service, "--host", HOST, "--yes", *arguments)
        return self.site.sparkwright(*arguments, code=code)

    def ask(self, service: str) -> tuple[int, dict[str, str], Any]:
        """Status, headers and body of a client's request."""
        connection = http.client.HTTPConnection(ADDRESS, PORTS.get(service, 8000), timeout=120)
        body = {"model": service, "prompt": "1 2 3", "max_tokens": 4}
        headers = {
            "Authorization": f"Bearer {self.site.key}", "Content-Type": "application/json",
        }  # fmt: skip
        try:
            connection.request("POST", "/v1/completions", json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, json.loads(text)
        finally:
            connection.close()

    def serving(self) -> dict[str, int]:
        return {name: self.ask(name)[0] for name in PORTS}


def only(name: str) -> dict[str, int]:
    return {port: 200 if port == name else 503 for port in PORTS}


def running() -> set[str]:
    """The running members of the group, according to Docker."""
    names = ssh(HOST, "docker ps --format '{{.Names}}'").split()
    return {name.removeprefix("sparkwright-") for name in names} & set(PORTS)


def unlocked() -> bool:
    """Whether no run holds the host's lock."""
    return not ssh(HOST, "sudo ls /opt/sparkwright/state | grep -x lock.json || true")


@pytest.fixture(scope="module")
def evening(site: Site) -> Iterator[Evening]:
    site.power_on()
    site.repair()
    result = Evening(site)
    result.deploy()
    yield result
    names = [word for name in PORTS for word in ("--service", name)]
    site.sparkwright("remove", INVENTORY, "--limit", HOST, *names, "--yes")
    site.repair()
    site.deploy("--limit", HOST)


def test_activating_a_service_puts_the_running_service_to_sleep(evening: Evening) -> None:
    site = evening.site
    run = evening.deploy()
    assert run.changed == set(), run.output
    states = {row["name"]: row["outcome"] for row in run.host(HOST)["services"]}
    assert states == {"qwen36": None, "chat": None, "coder": "sleeps", "writer": "sleeps"}
    assert (running(), evening.serving()) == ({"chat"}, only("chat"))
    dry = evening.activate("coder", "--dry")
    assert "would stop chat and start coder" in dry
    assert running() == {"chat"}

    with Load(ADDRESS, 8000, site.key, workers=2) as load:
        text = evening.activate("coder", "--why", "work")
    assert (load.faults, load.served > 0) == ([], True)
    assert "coder runs, and chat sleeps" in text
    assert (running(), evening.serving()) == ({"coder"}, only("coder"))
    code, headers, body = evening.ask("chat")
    assert (code, headers["retry-after"], body["error"]["running"]) == (503, "60", "coder")

    assert evening.deploy().changed == set()
    assert "sleeps" in site.sparkwright("status", INVENTORY, "--limit", HOST)
    assert "activated: work" in site.sparkwright("history", INVENTORY, "--limit", HOST)
    site.sparkwright("restart", INVENTORY, "--limit", HOST, "--service", "chat", "--yes", code=1)
    # A manual start and a restart of Docker leave a sleeping service asleep.
    ssh(HOST, "sudo systemctl start sparkwright-chat; sudo systemctl restart docker")
    until(lambda: running() == {"coder"} and evening.ask("coder")[0] == 200, "coder is back", 90)
    assert evening.serving() == only("coder")


def test_a_failed_activation_is_reverted(evening: Evening) -> None:
    """The new release was written while the service slept: the gate runs when the service is
    activated.
    """
    ill = 'sparks[1][1]["services"]["writer"]["environment"] = {"FAKE_VLLM_FAULT": "garbage"}\n'
    assert evening.deploy(ill).changed == {HOST}
    before = running()
    assert "runs again" in evening.activate("writer", code=1)
    assert running() == before
    assert evening.serving() == only(*before)
    assert evening.deploy().changed == {HOST}  # the good release replaces the bad release


def test_the_calendar_switches_the_services_of_a_group(evening: Evening) -> None:
    evening.activate("coder")
    # The switch is due at a full minute after the end of the deploy.
    begin = int(inside(HOST, "date", "+%s")) // 60 + 2
    times = [time.strftime("%H:%M", time.gmtime(60 * item)) for item in (begin, begin + 600)]
    assert evening.deploy(schedule={"writer": "..".join(times)}).changed == {HOST}
    assert running() == {"coder"}  # no deploy changes the active service
    until(lambda: evening.ask("writer")[0] == 200, "the calendar's service", 240)
    assert (running(), evening.serving()) == ({"writer"}, only("writer"))
    until(unlocked, "its lock is let go", 30)
    assert "calendar@" in evening.site.sparkwright("history", INVENTORY, "--limit", HOST)
    assert evening.deploy(schedule={"writer": "..".join(times)}).changed == set()
    assert evening.deploy().changed == {HOST}  # the deploy removes the timer with the setting
    ssh(HOST, "test ! -e /etc/systemd/system/sparkwright-schedule.timer")


def test_a_request_starts_its_service_and_waits(evening: Evening) -> None:
    woken = 'sparks[1][1]["services"]["writer"]["activate"] = "on-request"\n'
    settings = {"activation": {"stay_seconds": 1, "wait_seconds": 120}}
    evening.activate("coder")
    assert evening.deploy(woken, **settings).changed == {HOST}
    assert evening.deploy(woken, **settings).changed == set()
    assert status(ADDRESS, PORTS["writer"], "POST", "/v1/completions", body="{}") == 401
    assert (evening.ask("chat")[0], running()) == (503, {"coder"})
    with Load(ADDRESS, 8000, evening.site.key, workers=2) as load:
        code, _, body = evening.ask("writer")
    assert (code, bool(body.get("usage"))) == (200, True)
    assert (load.faults, load.served > 0) == ([], True)
    assert (running(), evening.serving()) == ({"writer"}, only("writer"))
    assert "request@" in evening.site.sparkwright("history", INVENTORY, "--limit", HOST)
    assert evening.deploy().changed == {HOST}
    ssh(HOST, "test ! -e /etc/systemd/system/sparkwright-wake.socket")


def test_an_idle_service_is_stopped_and_started_by_the_next_request(evening: Evening) -> None:
    idle = """sparks[1][1]["services"]["writer"].update(
        {"activate": "on-request", "idle": {"after": "15s"}})\n"""
    evening.activate("writer")
    assert evening.deploy(idle).changed == {HOST}
    with Load(ADDRESS, PORTS["writer"], evening.site.key, workers=1, model="writer") as load:
        time.sleep(40)
        assert running() == {"writer"}  # constant requests keep the service running
    assert (load.faults, load.served > 0) == ([], True)
    until(lambda: running() == set() and unlocked(), "it is stopped", 120)
    assert evening.deploy(idle).changed == set()
    assert " idle " in evening.site.sparkwright("status", INVENTORY, "--limit", HOST)
    doctor = evening.site.call("doctor", INVENTORY, "--limit", HOST)
    assert "writer" not in doctor.stdout
    assert (evening.ask("chat")[0], running()) == (503, set())
    code, _, body = evening.ask("writer")
    assert (code, bool(body.get("usage")), running()) == (200, True, {"writer"})
    assert "idle@" in evening.site.sparkwright("history", INVENTORY, "--limit", HOST)
    until(lambda: running() == set() and unlocked(), "it is stopped again", 120)
    # Without the setting, the group's first service runs again.
    assert evening.deploy().changed == {HOST}
    assert running() == {"chat"}


def test_an_idle_engine_sleeps_in_its_process_and_wakes_up_for_the_next_request(
    evening: Evening,
) -> None:
    idle = """sparks[1][1]["services"]["qwen36"].update(
        {"served_names": ["qwen36"], "idle": {"after": "15s", "do": "sleep"}})\n"""
    assert evening.deploy(idle).changed == {HOST}
    process = "docker inspect -f '{{.Id}} {{.State.StartedAt}}' sparkwright-qwen36"
    began = ssh(HOST, process)

    def sleeps() -> bool:
        # `status` exits with 1 while the service goes to sleep.
        text = evening.site.call("status", INVENTORY, "--limit", HOST).stdout
        return " idle " in text and unlocked()

    until(sleeps, "it sleeps", 120)
    assert ssh(HOST, process) == began
    assert evening.deploy(idle).changed == set()
    assert "qwen36" not in evening.site.call("doctor", INVENTORY, "--limit", HOST).stdout
    code, _, body = evening.ask("qwen36")
    assert (code, bool(body.get("usage")), ssh(HOST, process)) == (200, True, began)
    # A restart of Docker ends the engine's process, and the next request starts the service.
    until(sleeps, "it sleeps again", 120)
    ssh(HOST, "sudo systemctl restart docker")
    assert (evening.ask("qwen36")[0], ssh(HOST, process) != began) == (200, True)
    assert evening.deploy().changed == {HOST}
