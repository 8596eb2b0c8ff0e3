"""The live page's server: access control, and data for a page."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sparkwright.cli.lib.hosts import Hosts
from sparkwright.engines import metric_names
from sparkwright.extras.dashboard import dashboard
from sparkwright.extras.dashboard.contents import Page
from sparkwright.extras.dashboard.glance import (
    UnfinishedFetch,
    counted,
    rates,
    recent,
    unfinished,
)
from sparkwright.extras.dashboard.server import Site
from sparkwright.extras.dashboard.view import Fleet
from sparkwright.findings.user_error import UserError, refusal
from sparkwright.host.lib import systemd
from sparkwright.host.lib.homes import Maintenance
from sparkwright.host.lib.metrics import totals
from sparkwright.host.lock import Owner
from sparkwright.host.models.report import UsageRequest, UsageRow
from sparkwright.host.release import HistoryEntry, Phase, SwitchJournal
from sparkwright.host.watch.state import WatchFinding, WatchReport
from tests.tables import Tables
from tests.unit.builders import ROOT
from tests.unit.cli.answering import run
from tests.unit.extras.dashboard.glances import (
    ACTED,
    MODEL,
    NOW,
    RELEASE,
    act,
    empty,
    expected,
    glance,
    service,
    serving,
)

cases = Tables(__file__)


@pytest.fixture
def fleet() -> Fleet:
    """Two hosts before the first request."""
    return Fleet({"spark-1": expected(), "spark-2": expected()})


@pytest.fixture
def site(fleet: Fleet) -> Iterator[Site]:
    """A server with all its functions."""
    ACTED.clear()
    with serving(fleet, empty, act) as site:
        yield site


def ask(
    site: Site, path: str = "/", method: str = "GET", body: Any = None,
    headers: dict[str, str | None] | None = None,
) -> HTTPResponse:  # fmt: skip
    """Answer to a request as the page sends it; a header that is None is left out."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)
    usual = {"Host": site.name, "Cookie": f"{site.cookie}={site.session}"}
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    text = body if isinstance(body, str) else json.dumps(body)
    data = None if body is None else text.encode()
    if data is not None:
        usual |= {"Origin": site.url, "Content-Type": "application/json"}
        usual["Content-Length"] = str(len(data))
    for name, value in {**usual, **(headers or {})}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(data)
    return connection.getresponse()


def test_the_token_becomes_a_cookie_hidden_from_scripts_and_other_sites(site: Site) -> None:
    answer = ask(site, f"/?token={site.token}", headers={"Cookie": None})
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert cookie == f"{site.cookie}={site.session}; Path=/; HttpOnly; SameSite=Strict"
    assert site.token not in cookie
    page = ask(site)
    assert page.status == 200
    text = page.read().decode()
    assert site.token not in text
    assert "<style" not in text
    assert "style=" not in text
    assert "onclick" not in text
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy


CONTROL = {"action": "stop", "host": "spark-1", "service": "qwen36"}


@cases("status", "path", "headers")
def test_only_the_page_itself_may_read_data(
    site: Site, status: int, path: str, headers: dict[str, str | None]
) -> None:
    facts = {"cookie": site.cookie, "token": site.token, "port": site.port}
    facts |= {"session": site.session, "name": site.name}
    sent = {name: value and value.format_map(facts) for name, value in headers.items()}
    answer = ask(site, path.format_map(facts), headers=sent)
    assert answer.status == status, answer.read()
    if status != 200:
        assert "Set-Cookie" not in answer.headers


@cases("status", "headers")
def test_only_the_page_may_make_changes(
    site: Site, status: int, headers: dict[str, str | None]
) -> None:
    answer = ask(site, "/control", "POST", CONTROL, headers)
    assert answer.status == status, answer.read()
    assert ([("stop", "spark-1", "qwen36")] if status == 200 else []) == ACTED


@pytest.mark.parametrize("body", [[1], "[" * 4000])
def test_an_invalid_change_request_is_refused(site: Site, body: Any) -> None:
    assert (ask(site, "/control", "POST", body).status, ACTED) == (400, [])


def test_a_page_without_control_changes_nothing(fleet: Fleet) -> None:
    with serving(fleet, empty) as site:
        assert ask(site, "/control", "POST", CONTROL).status == 403
        assert 'data-actions=""' in ask(site).read().decode()


def events(answer: HTTPResponse, count: int) -> list[dict[str, Any]]:
    """The next hosts of a stream."""
    lines = (line for line in iter(answer.readline, b"") if line.startswith(b"data: {"))
    return [json.loads(next(lines)[6:]) for _ in range(count)]


def test_an_open_page_shows_the_end_of_a_run(fleet: Fleet) -> None:
    times = iter([1.0, 2.0])
    with serving(fleet, empty, record=lambda: next(times, 2.0)) as site:
        answer = ask(site, "/events")
        for at in (b"1.0", b"2.0"):
            while answer.readline() != b"event: beat\n":
                pass
            assert answer.readline() == b"data: %s\n" % at
            fleet.take("spark-1", glance())


def test_hosts_are_queried_only_while_a_page_is_open(site: Site, fleet: Fleet) -> None:
    ask(site).read()
    assert not fleet.pages
    answer = ask(site, "/events")
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert [data["state"] for data in events(answer, 2)] == ["waiting", "waiting"]
    assert fleet.pages
    fleet.take("spark-1", glance())
    (data,) = events(answer, 1)
    assert (data["host"], data["state"]) == ("spark-1", "up")
    answer.close()
    deadline = time.monotonic() + 10
    while fleet.pages and time.monotonic() < deadline:
        fleet.take("spark-1", glance())
        time.sleep(0.02)
    assert not fleet.pages


def seen(fleet: Fleet, host: str = "spark-1") -> dict[str, Any]:
    """A host in the page's data."""
    return next(data for data in fleet.since(0, 0)[1] if data["host"] == host)


def test_an_answer_from_before_a_pause_gives_no_state_and_no_rate(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.take("spark-1", glance(100.0))
    assert (
        seen(fleet)["services"][0]["load"]["first_token"] is None
    )  # the counters only give a mean since the engine's start
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 40)
    assert seen(fleet)["state"] == "waiting"
    fleet.take("spark-1", glance(140.0))
    assert (seen(fleet)["state"], seen(fleet)["services"][0]["load"]["tokens"]) == ("up", None)


def test_a_hostile_host_cannot_make_the_page_endless(fleet: Fleet) -> None:
    fetch = UnfinishedFetch(9, message="x" * 9999)
    names = tuple(f"a{n}" for n in range(999))
    nan = {"qwen36": float("nan")}
    fleet.take("spark-1", glance(names=names, fetches=(fetch,) * 999, hour=nan))
    text = json.dumps(seen(fleet), allow_nan=False)
    assert len(text) < 100_000
    assert '"qwen36"' in text


def test_usage_by_key_lists_the_most_used_first(fleet: Fleet, tmp_path: Path) -> None:
    rows = [UsageRow("2026-11-24", f"key-{n}", "m", n, 0, 7, 9, 1.5, 0) for n in range(99)]
    fleet.take("spark-1", glance(usage=tuple(rows)))
    shown = seen(fleet)["usage"]
    assert [row["key"] for row in shown] == [f"key-{n}" for n in range(98, 34, -1)]
    damaged = tmp_path / "usage.db"
    damaged.write_text("no database " * 999)
    for database in (damaged, tmp_path / "absent.db"):
        assert counted(UsageRequest(str(database), "2026-11-24")) == ()


def test_a_fault_of_the_site_is_shown_without_a_traceback(fleet: Fleet) -> None:
    def broken() -> Page:
        raise refusal("group_data/all.py", "port is not a number", "write a number")

    with serving(fleet, broken) as site:
        answer = ask(site)
    text = answer.read().decode()
    assert (answer.status, "port is not a number" in text, "Traceback" in text) == (
        500,
        True,
        False,
    )


def test_rates_cover_only_the_last_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring: list[Any] = [{"at": 60.0 * n, "services": {"a": {"metrics": {"generated": 600 * n}}}}
            for n in range(100)]  # fmt: skip
    file = tmp_path / "watch.json"
    assert recent(file) == []
    file.write_text(json.dumps({"ring": ring}))
    for now, count in ((5950.0, 60), (6200.0, 0), (100.0, 2)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        assert len(recent(file)) == count
        assert rates(recent(file)) == ({"a": 10.0} if count == 60 else {})


@pytest.mark.usefixtures("checkout")
def test_a_broken_plan_is_reported_on_the_page() -> None:
    hosts = Hosts(Path("inventory/lab.py"), ("no_such_setting=1",))
    assert "no_such_setting" in dashboard._page(hosts, control=False)


def test_a_host_is_shown_by_its_last_two_answers(fleet: Fleet) -> None:
    for at in (100.0, 105.0):
        fleet.take("spark-1", glance(at))
    data = seen(fleet)
    (service,) = data["services"]
    assert (service["model"], service["address"]) == (MODEL, "https://10.0.0.1:8000/v1")
    assert (service["well"], service["plan"]) == (True, "as planned")
    load = service["load"]
    assert (load["tokens"], load["running"]) == (40.0, 2.0)
    assert load["first_token"] == pytest.approx(0.12)
    assert (data["machine"]["temperature"], data["machine"]["clock"]) == (66.0, 2405.0)
    fleet.take("spark-1", glance(110.0, hour={"qwen36": 7.5}))
    shown = seen(fleet)
    assert (service["hour"], shown["services"][0]["hour"]) == (None, 7.5)
    fleet.take("spark-1", OSError("no route"))
    gone = seen(fleet)
    assert (gone["state"], gone["problem"], gone["seen"]) == ("off", "no route", shown["seen"])
    # A restarted engine has no earlier count.
    fleet.take("spark-1", glance(1.0))
    assert seen(fleet)["services"][0]["load"]["tokens"] is None


def test_a_roll_out_its_end_and_findings_are_shown(fleet: Fleet) -> None:
    end = HistoryEntry("qwen36", "0aa1c5ffab17", RELEASE, "me@pc", NOW, (), 3.2, "good", ())
    wedge = WatchFinding("wedge", "qwen36", "error", "no token", NOW + 60)
    old = HistoryEntry("qwen36", None, "0aa1c5ffab17", "me@pc", NOW - 9000, (), 3.2, "good", ())
    status = {
        "lock": Owner(by="me@pc", since=NOW + 40), "switch": SwitchJournal("1", "draining"),
        "history": (old, end), "maintenance": Maintenance("me@pc", NOW + 40, "a fan"),
        "services": {"qwen36": service(503, "0aa1c5ffab17")},
        "watch": WatchReport(NOW + 90, (wedge,)),
    }  # fmt: skip
    fleet.take("spark-1", glance(status=status))
    data = seen(fleet)
    assert data["work"] == "me@pc (for 1 min): draining"
    assert data["maintenance"] == "in maintenance for 1 min, by me@pc: a fan"
    assert [(item["from_release"], item["to"]) for item in data["ended"]] == [
        ("0aa1c5ffab17", RELEASE)
    ]
    (finding,) = data["findings"]
    assert (finding["text"], finding["severity"]) == (
        "wedge: no token (watched for 40 s)", "error",
    )  # fmt: skip
    assert any("sparkwright" in text for text in finding["more"])
    (row,) = data["services"]
    assert row["well"] is False
    assert row["plan"] == f"differs: release {RELEASE}"


def test_running_and_interrupted_downloads_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = {"state": "running", "bytes_done": 1, "bytes_total": 2}
    written: dict[str, Any] = {
        "cut": half, "done": {**half, "state": "done"}, "old": half, "other": {"state": "x"},
        "runs": half,
    }  # fmt: skip
    for name, progress in written.items():
        folder = tmp_path / f"sparkwright-{name}"
        folder.mkdir()
        (folder / "progress.json").write_text(json.dumps(progress))
    os.utime(tmp_path / "sparkwright-old/progress.json", (1, 1))
    (tmp_path / "sparkwright-runs/request.json").write_text('{"fetch": {"repo": "org/model"}}')
    states = {"sparkwright-runs.service": "activating"}
    monkeypatch.setattr(systemd, "unit", lambda name, **_: {"ActiveState": states.get(name, "")})
    shown = [(each.name, each.runs) for each in unfinished(tmp_path)]
    assert shown == [("sparkwright-cut", False), ("org/model", True)]


@cases("generated", "first")
def test_every_engine_shows_its_measured_time_to_the_first_token(
    fleet: Fleet, generated: str, first: float | None
) -> None:
    for at in (100.0, 105.0):
        name = f"{generated.partition(':')[0]}:time_to_first_token_seconds"
        text = f"{name}_sum {at / 4}\n{name}_count {at}\n{generated} {at}\n"
        answer = glance(at)
        load = replace(answer.load, services={"qwen36": totals(text, metric_names())})
        fleet.take("spark-1", replace(answer, load=load))
    (service,) = seen(fleet)["services"]
    assert (service["load"]["first_token"], service["load"]["tokens"]) == (first, 1.0)


def test_each_host_of_a_roll_out_has_one_of_three_states(fleet: Fleet) -> None:
    lock = Owner(by="me@pc", since=NOW + 40, batch="batch 2 of 3")
    end = HistoryEntry("qwen36", "a1", RELEASE, "me@pc", NOW + 70, (), 3.2, "good", ())
    before, phases = replace(end, at=NOW + 20), {"qwen36": Phase("loading weights", NOW + 80)}
    for switch, history, step in (
        (None, (before,), "not switched yet"),
        (SwitchJournal("1", "draining"), (before,), "draining"),
        (SwitchJournal("1", "starting", phases=phases), (), "qwen36: loading weights for 20 s"),
        (SwitchJournal("1", "ended"), (before, end), "switched"),
    ):
        status = {"lock": lock, "switch": switch, "history": history}
        fleet.take("spark-1", glance(status=status))
        assert seen(fleet)["work"] == f"me@pc (for 1 min): batch 2 of 3: {step}"


def test_a_switch_after_the_start_is_not_compared_with_the_plan() -> None:
    end = HistoryEntry("qwen36", RELEASE, "b2", "me@pc", NOW, (), 3.2, "good", ())
    status = {"services": {"qwen36": service(release="b2")}, "history": (end,)}
    for read, plan in (
        (NOW + 1, f"release {RELEASE}"),
        (NOW - 1, "switched since the dashboard was started: restart the dashboard to compare"
                  " with the plan"),
    ):  # fmt: skip
        fleet = Fleet({"spark-1": replace(expected(), read=read)})
        fleet.take("spark-1", glance(status=status))
        assert seen(fleet)["services"][0]["plan"] == f"differs: {plan}"


@cases("arguments", "message")
def test_an_invalid_command_line_is_refused(
    checkout: Any, arguments: tuple[str, ...], message: str
) -> None:
    done = run("dashboard", "inventory/lab.py", "--page-port", "0", *arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_no_other_user_can_listen_on_the_dashboards_ipv6_port() -> None:
    with closing(socket.create_server(("::1", 0), family=socket.AF_INET6)) as other_user:
        port = other_user.getsockname()[1]
        with pytest.raises(UserError, match="Address already in use"):
            dashboard._listening("127.0.0.1", port)
    _ours = dashboard._listening("127.0.0.1", port)
    with pytest.raises(OSError, match="already in use"):
        socket.create_server(("::1", port), family=socket.AF_INET6)


@pytest.mark.parametrize("listen", ["127.0.0.1", "127.0.0.2"])
def test_the_command_shows_a_host_that_is_off_and_ends_with_ctrl_c(
    here: Path, request: pytest.FixtureRequest, listen: str
) -> None:
    Path("lab.py").write_text('boxes = [("box", {"ssh_hostname": "127.0.0.1", "ssh_port": 9})]')
    program = subprocess.Popen(
        [sys.executable, "-m", "sparkwright", "dashboard", "lab.py", "--page-port", "0",
         "--listen", listen], env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    request.addfinalizer(program.kill)
    assert program.stdout
    url = urlsplit(program.stdout.readline().strip())
    sent, tls = {"Host": url.netloc}, listen != "127.0.0.1"

    def get(path: str) -> HTTPResponse:
        page = http.client.HTTPConnection(listen, url.port, timeout=20)
        if tls:
            trusted = ssl.create_default_context(cafile=".sparkwright/ca/ca.crt")
            page = http.client.HTTPSConnection(listen, url.port, timeout=20, context=trusted)
        page.request("GET", path, headers=sent)
        return page.getresponse()

    assert url.scheme == ("https" if tls else "http")
    clear = http.client.HTTPConnection(listen, url.port, timeout=5)
    clear.request("GET", f"/?{url.query}")
    with pytest.raises((OSError, http.client.HTTPException)) if tls else nullcontext():
        assert clear.getresponse().status == 421  # the Host header has another name
    cookie = get(f"/?{url.query}").headers["Set-Cookie"]
    assert cookie.startswith("__Host-") == cookie.endswith("Strict; Secure") == tls
    sent["Cookie"] = cookie.partition(";")[0]
    stream = get("/events")
    while b'"state": "off", "problem": "not reached' not in stream.readline():
        pass
    assert get("/").status == 200
    program.send_signal(signal.SIGINT)  # the page's thread may be at work
    assert program.wait(30) == 130


@cases("action", "host", "name", "command")
def test_an_action_runs_the_command_of_its_name(
    monkeypatch: pytest.MonkeyPatch, checkout: Any, fleet: Fleet, action: str, host: str,
    name: str, command: list[str] | None,
) -> None:  # fmt: skip
    ran: list[list[str]] = []

    def started(arguments: list[str], **_: Any) -> Any:
        ran.append(arguments[3:])
        return type("Done", (), {"returncode": 0, "stdout": "done\n"})

    monkeypatch.setattr(subprocess, "run", started)
    done = dashboard._act(Hosts(Path("inventory/lab.py")), [], fleet, action, host, name)
    assert done[0] is (command is not None)
    assert ran == ([command] if command else [])
