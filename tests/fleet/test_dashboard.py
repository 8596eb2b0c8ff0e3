"""The live page in chromium while a key is revoked, a roll-out runs, a download is cut and a host
dies."""

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from lab import machines
from tests.browser.tab import Tab, opened
from tests.fleet.proxy_clients import status
from tests.fleet.site import GOOD, MACHINES, Site, answers, bare, hub, ssh, until

INVENTORY = "inventory/virtual.py"
#: Hosts: with a switched service, with a download, and with a power cut.
SWITCHED, FETCHES, DIES = "spark-1", "spark-2", "rtx-1"
#: Script that records every text of the roll-out in the browser.
RECORDER = """
addEventListener("DOMContentLoaded", () => {
  const part = document.getElementById("rollout");
  const keep = () => { sessionStorage.shown += `\\n${part.innerText}`; };
  new MutationObserver(keep)
    .observe(part, {subtree: true, childList: true, characterData: true});
});
"""
LIMIT = [word for host in GOOD for word in ("--limit", host)]


class Page:
    """An open page: the last data of each host, and all messages about its work."""

    def __init__(self, url: str) -> None:
        self.url, parts = url, urlsplit(url)
        self._place, self._name = ("127.0.0.1", parts.port), parts.netloc
        self.hosts: dict[str, dict[str, Any]] = {}
        self.work: set[tuple[str, str]] = set()
        self.fetches: list[dict[str, Any]] = []
        answer = self._ask("GET", f"/?{parts.query}")
        assert answer.status == 303
        self._cookie = answer.headers["Set-Cookie"].partition(";")[0]
        self._stream = self._ask("GET", "/events")
        threading.Thread(target=self._read, daemon=True).start()

    def _ask(self, method: str, path: str, body: Any = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(*self._place, timeout=120)
        headers = {"Host": self._name, "Cookie": getattr(self, "_cookie", "")}
        if body is not None:
            headers |= {"Origin": f"http://{self._name}", "Content-Type": "application/json"}
        connection.request(method, path, body and json.dumps(body), headers)
        return connection.getresponse()

    def control(self, action: str, host: str, service: str) -> dict[str, Any]:
        """Answer to an action."""
        body = {"action": action, "host": host, "service": service}
        result: dict[str, Any] = json.loads(self._ask("POST", "/control", body).read())
        return result

    def log(self, host: str) -> str:
        """The last lines of a service."""
        return self._ask("GET", f"/log?host={host}&service=qwen36").read().decode()

    def _read(self) -> None:
        with suppress(OSError, ValueError, AttributeError):
            for line in self._stream:
                if line.startswith(b"data: {"):
                    data = json.loads(line[6:])
                    self.hosts[data["host"]] = data
                    self.work.add((data["host"], data.get("work", "")))
                    self.fetches += data["fetches"]

    def service(self, host: str) -> dict[str, Any]:
        """The service of a host."""
        return next(item for item in self.hosts[host]["services"] if item["name"] == "qwen36")

    def state(self, host: str) -> str:
        """State of a host: up, off or waiting."""
        return str(self.hosts.get(host, {}).get("state"))


@pytest.fixture(scope="module")
def page(site: Site) -> Iterator[Page]:
    """The page of a fleet as planned, with a client's key."""
    site.power_on()
    site.repair()
    with (site.folder / "group_data/all.py").open("a") as settings:
        settings.write('keys = {"phone": {}}\n')
    site.deploy(*LIMIT)
    program = subprocess.Popen(
        [sys.executable, "-m", "sparkwright", "dashboard", INVENTORY, *LIMIT,
         "--page-port", "0", "--control"],
        cwd=site.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert program.stdout
        url = program.stdout.readline().strip()
        assert "/?token=" in url
        page = Page(url)
        until(lambda: all(page.state(host) == "up" for host in GOOD), "every host answers")
        yield page
    finally:
        program.terminate()
        program.wait(30)
        hub("DELETE")
        site.power_on()
        site.repair()


@pytest.fixture(scope="module")
def tab(page: Page) -> Iterator[Tab]:
    """The same page in a browser as wide as a phone, which records every text of the roll-out, also
    after a reload.
    """
    with opened() as tab:
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=RECORDER)
        tab.open(page.url, width=360)
        tab.wait(f"document.querySelectorAll('.host').length == {len(GOOD)}")
        yield tab
        assert tab.errors == []


def shows(tab: Tab, host: str, text: str, seconds: float = 60.0) -> None:
    """Wait until a host's card has a text."""
    card = f"document.querySelector('.host[aria-label={host}]').innerText"
    tab.wait(f"{card}.includes({json.dumps(text)})", seconds)


@pytest.mark.timeout(600)
def test_the_dashboard_shows_every_service_and_survives_a_revoked_key(
    site: Site, page: Page, tab: Tab
) -> None:
    for host in GOOD:
        until(lambda host=host: page.service(host)["well"], f"{host} serves")
        assert page.service(host)["plan"] == "as planned"
        shows(tab, host, "✓ serves")
    assert "http" in page.service(SWITCHED)["address"]
    assert page.log(SWITCHED).strip()
    key = (site.folder / ".sparkwright/keys/phone").read_text().strip()
    address = MACHINES[SWITCHED].address
    assert status(address, 8000, "GET", "/v1/models", key) == 200
    site.sparkwright("key", "revoke", "phone", INVENTORY)
    assert status(address, 8000, "GET", "/v1/models", key) == 401
    before = page.hosts[SWITCHED]["seen"]
    until(lambda: page.hosts[SWITCHED]["seen"] > before, "the host is asked again")
    assert page.service(SWITCHED)["load"]["running"] is not None
    assert key not in json.dumps(page.hosts)
    assert site.key not in json.dumps(page.hosts)
    shows(tab, SWITCHED, "✓ serves")
    assert key not in tab.value("document.documentElement.outerHTML")


@pytest.mark.timeout(600)
def test_a_roll_out_and_an_action_of_the_page_are_shown(site: Site, page: Page, tab: Tab) -> None:
    change = '"port": 8000, "environment": {"DASHBOARD": "1"},'
    site.edit("group_data/sparks.py", '"port": 8000,', change)
    before = page.hosts[SWITCHED]["ended"]
    try:
        site.deploy("--limit", SWITCHED)
        until(lambda: page.hosts[SWITCHED]["ended"] != before, "the end of the switch is shown")
        assert any(host == SWITCHED and text for host, text in page.work)
        assert page.hosts[SWITCHED]["ended"][-1]["result"] == "good"
        assert page.service(SWITCHED)["well"]
        assert "since the dashboard was started" in page.service(SWITCHED)["plan"]
        tab.wait("/@.* \\(for \\d+ (s|min)\\): ./.test(sessionStorage.shown)")
        tab.wait("document.getElementById('rollout').innerText.includes('serving, down for')")
        done = page.control("restart", SWITCHED, "qwen36")
        assert done["done"], done["text"]
        assert "restarted" in site.sparkwright("history", INVENTORY, "--limit", SWITCHED)
        assert page.control("stop", SWITCHED, "no-such-service")["done"] is False
    finally:
        site.edit("group_data/sparks.py", change, '"port": 8000,')
    site.deploy("--limit", SWITCHED)


@pytest.mark.timeout(600)
def test_a_download_that_is_cut_is_shown(site: Site, page: Page, tab: Tab) -> None:
    bare(FETCHES)
    hub("POST", order={"match": "*/model-*", "sleep": 20.0, "times": 99})
    run = site.start("--limit", FETCHES)
    try:
        until(lambda: any(each["runs"] for each in page.fetches), "the fetch is shown", 120)
        run.kill()
        run.wait()
        ssh(FETCHES, "sudo systemctl kill --signal=KILL 'sparkwright-fetch*'")

        def cut() -> bool:
            shown = page.hosts[FETCHES]["fetches"]
            return bool(shown) and not any(each["runs"] for each in shown)

        until(cut, "the cut is shown")
        shows(tab, FETCHES, ": cut off")
    finally:
        run.kill()
        run.wait()
        hub("DELETE")
    site.deploy("--limit", FETCHES, "--data", "break_lock=True")
    until(lambda: page.service(FETCHES)["well"], "it serves")
    until(lambda: not page.hosts[FETCHES]["fetches"], "the fetch is done")


@pytest.mark.timeout(600)
def test_a_dead_host_is_shown_as_off_and_delays_no_other_host(
    site: Site, page: Page, tab: Tab
) -> None:
    machines.cut_power(MACHINES[DIES])
    until(lambda: page.state(DIES) == "off", "it is off", 120)
    assert page.hosts[DIES]["problem"]
    assert page.hosts[DIES]["seen"] > 0
    shows(tab, DIES, "off, last seen")
    others = [host for host in GOOD if host != DIES]
    for _ in range(2):
        before = {host: page.hosts[host]["seen"] for host in others}
        began = time.monotonic()
        until(lambda: all(page.hosts[host]["seen"] > before[host] for host in others), "answers")  # noqa: B023
        assert time.monotonic() - began < 15
    site.power_on()
    until(lambda: page.state(DIES) == "up", "it is back", 180)
    until(lambda: answers(site, DIES), "it serves", 180)
    shows(tab, DIES, "✓ serves")
