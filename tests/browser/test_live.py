"""The live page in a real browser: its contents, refused actions, and its CPU use."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sparkwright.checks.configuration.parts import Memory, Part
from sparkwright.extras.dashboard.glance import UnfinishedFetch
from sparkwright.extras.dashboard.server import Site
from sparkwright.extras.dashboard.view import Fleet
from sparkwright.host.lib.records import replace
from sparkwright.host.lock import Owner
from sparkwright.host.models.report import UsageRow
from sparkwright.host.release import HistoryEntry, SwitchJournal
from sparkwright.host.watch.state import WatchFinding, WatchReport
from tests.browser.chromium import _PROBE
from tests.browser.tab import Tab, opened
from tests.unit.extras.dashboard.glances import ACTED, NOW, act, empty, expected, glance, serving

MEMORY = Memory(119.7, True, (Part("#", "w", 22.9), Part("=", "kv", 60.9), Part("o", "s", 8.0)))
COPY = "document.querySelector('.host[aria-label=spark-1] [data-copy]')"
#: Text with markup, and with a character that reverses the direction of the line.
HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>\u202e'\"&amp;"


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    """A tab for all tests."""
    with opened() as tab:
        yield tab


@pytest.fixture
def fleet() -> Fleet:
    """Three hosts with a service each."""
    return Fleet({f"spark-{n}": expected("qwen36", memory=MEMORY) for n in (1, 2, 3)})


@pytest.fixture
def site(fleet: Fleet, tab: Tab) -> Iterator[Site]:
    """A site whose page is open in the tab."""
    ACTED.clear()
    tab.errors.clear()
    with serving(fleet, empty, act) as site:
        visit(tab, site, 3)
        yield site
        tab.open("about:blank")


def visit(tab: Tab, site: Site, hosts: int, **window: Any) -> None:
    """Open the printed address."""
    tab.open(f"{site.url}/?token={site.token}", **window)
    tab.wait(f"document.querySelectorAll('.host').length == {hosts}")


def card(host: str) -> str:
    """JavaScript expression for the text of a host's card."""
    return f"document.querySelector('.host[aria-label={host}]').innerText"


def test_the_token_leaves_the_address_and_no_script_reads_the_cookie(tab: Tab, site: Site) -> None:
    assert tab.value("location.href") == f"{site.url}/"
    assert tab.value("document.cookie") == ""
    assert tab.errors == []


def test_the_page_shows_a_dead_host_a_cut_download_and_a_roll_out(
    tab: Tab, site: Site, fleet: Fleet
) -> None:
    for at in (100.0, 105.0):
        fleet.take("spark-1", glance(at))
        fleet.take("spark-2", glance(at))
    shown = tab.wait(f"{card('spark-1')}.includes('40.0') && {card('spark-1')}")
    for text in (
        "97 of 120 GiB", "66 °C", "2405 MHz", "54 W", "0.12 s", "✓ serves", "AEON-7/Qwen3.6",
        "34 %", "https://10.0.0.1:8000/v1", "1200 of 3700 GB free on /",
        "Running\n2\n", "Waiting\n1\n", "weights 22.9 ", "KV cache 60.9 ", "others 8.0 ",
        "free 27.9",
    ):  # fmt: skip
        assert text in shown
    tab.call("Browser.grantPermissions", permissions=["clipboardReadWrite"])
    tab.value(f"{COPY}.click()")
    tab.wait(f"{COPY}.innerText == 'Copied'")
    assert tab.value("navigator.clipboard.readText()") == "https://10.0.0.1:8000/v1"
    assert "serve on 3 of 3 hosts" not in tab.value("document.getElementById('front').innerText")
    fleet.take("spark-2", OSError("not reached: no route"))
    tab.wait(f"{card('spark-2')}.includes('off, last seen')")
    tab.wait("document.getElementById('live-findings').innerText.includes('spark-2: does not')")
    assert "✗ unknown: the host is off" in tab.value(card("spark-2"))
    fetch = UnfinishedFetch(20 * 10**9, "running", 3 * 10**9, 10**8, name="org/model", runs=True)
    fleet.take("spark-1", glance(110.0, fetches=(fetch,)))
    tab.wait(f"{card('spark-1')}.includes('org/model: running: 3.00 of 20.00 GB at 100 MB/s')")
    fleet.take("spark-1", glance(115.0, fetches=(replace(fetch, runs=False),)))
    tab.wait(f"{card('spark-1')}.includes('org/model: cut off')")
    work = {"lock": Owner(by="me@pc", since=NOW), "switch": SwitchJournal("1", "draining")}
    fleet.take("spark-3", glance(100.0, status=work))
    tab.wait("document.getElementById('rollout').innerText.includes('draining')")
    end = HistoryEntry("qwen36", "a1", "b2", "me@pc", NOW + 90, (), 3.2, "good", ())
    fleet.take("spark-3", glance(105.0, status={"history": (end,)}))
    tab.wait("document.getElementById('rollout').innerText.includes('a1 → b2: serving')")
    assert "draining" not in tab.value("document.getElementById('rollout').innerText")
    assert tab.value("document.title") == "✗ Fleet"
    assert tab.errors == []


def test_text_of_a_host_never_becomes_markup(tab: Tab, fleet: Fleet) -> None:
    tab.errors.clear()
    hostile = Fleet({HOSTILE: expected(HOSTILE)})
    finding = WatchFinding(HOSTILE, HOSTILE, "error", HOSTILE, 1.0)
    end = HistoryEntry(HOSTILE, HOSTILE, HOSTILE, HOSTILE, NOW + 99, (), 1.0, HOSTILE, (HOSTILE,))
    status = {
        "lock": Owner(by=HOSTILE, since=NOW), "switch": SwitchJournal("1", HOSTILE),
        "history": (end,), "watch": WatchReport(NOW + 99, (finding,)),
    }  # fmt: skip
    with serving(hostile, empty, act, log=lambda *_: HOSTILE) as site:
        visit(tab, site, 1)
        count = "document.querySelectorAll('img, script, .host *').length"
        fetch = UnfinishedFetch(1, HOSTILE, message=HOSTILE, name=HOSTILE, runs=True)
        more = {"fetches": (fetch,), "disks": {HOSTILE: (1, 2)}}
        hostile.take(HOSTILE, glance(100.0, names=(HOSTILE,), status=status, **more))
        tab.wait("document.getElementById('rollout').innerText.includes('<img')")
        tab.value("document.querySelector('[data-log]').click()")
        tab.wait("document.getElementById('dialog-text').innerText.includes('<img')")
        assert tab.value("document.querySelectorAll('img').length") == 0
        assert tab.value("document.querySelectorAll('script').length") == 1
        assert tab.value(count) > 30
        text = tab.value("document.body.textContent")
        assert text.count("<img src=x onerror=alert(1)>") >= 10
        assert "\u202e" not in text
        # The policy of the page refuses actions that its script never takes.
        with pytest.raises(AssertionError, match="TrustedHTML"):
            tab.value("document.body.innerHTML = '<p>markup</p>'")
    assert [error for error in tab.errors if "TrustedHTML" not in error] == []


def test_a_click_shows_the_log_and_an_action_needs_one_confirmation(
    tab: Tab, site: Site, fleet: Fleet
) -> None:
    fleet.take("spark-1", glance())
    button = "document.querySelector('.host[aria-label=spark-1] [data-log]')"
    tab.wait(f"!!{button}")
    tab.value(f"{button}.click()")
    tab.wait("document.getElementById('dialog-text').innerText == 'spark-1 qwen36: <b>a line</b>'")
    tab.value("document.getElementById('dialog').close()")
    stop = "document.querySelector('[aria-label=\"stop qwen36 on spark-1\"]').click()"
    tab.value(
        f"window.asked = []; window.confirm = (t) => {{ asked.push(t); return false; }}; {stop}"
    )
    assert (tab.value("asked"), ACTED) == (["Stop: qwen36 on spark-1?"], [])
    tab.value(f"window.confirm = () => true; {stop}")
    tab.wait("document.getElementById('dialog-text').innerText.includes('done')")
    assert ACTED == [("stop", "spark-1", "qwen36")]


def test_the_page_is_reloaded_after_a_run_once_no_dialog_is_open(tab: Tab, fleet: Fleet) -> None:
    ended = [1.0]
    with serving(fleet, empty, record=lambda: ended[0]) as site:
        visit(tab, site, 3)
        tab.value("window.old = true; dialog('a title', 'a text')")
        ended[0] = 2.0
        fleet.take("spark-1", glance(3.0))
        tab.wait(f"{card('spark-1')}.includes('serves')")
        assert tab.value("window.old")
        tab.value("document.getElementById('dialog').close(); document.activeElement.blur()")
        fleet.take("spark-1", glance(4.0))
        tab.wait("window.old === undefined && document.querySelectorAll('.host').length == 3")


def test_a_late_log_does_not_appear_under_another_title(tab: Tab, fleet: Fleet) -> None:
    answered = threading.Event()

    def log(host: str, _: str) -> str:
        return f"log of {host}" if host == "spark-2" or answered.wait(10) else ""

    with serving(fleet, empty, log=log) as site:
        visit(tab, site, 3)
        for host in ("spark-1", "spark-2"):
            button = f"document.querySelector('[aria-label=\"Log of qwen36 on {host}\"]')"
            tab.wait(f"{button} && ({button}.click(), true)")
        tab.wait("document.getElementById('dialog-text').innerText == 'log of spark-2'")
        answered.set()
        tab.value("new Promise((done) => setTimeout(done, 500))")
        assert tab.value("document.getElementById('dialog').innerText.includes('spark-1')") is False


def probed(tab: Tab) -> dict[str, Any]:
    """Observations of the open page."""
    probe = _PROBE.read_text().replace(
        'addEventListener("load", () => {', "const looked = (() => {", 1
    )
    probe = probe.replace(
        'parent.postMessage(JSON.stringify(seen), "*");\n});', "return seen;\n});"
    )
    expression = f"(() => {{ const opened = true; {probe}; return looked(); }})()"
    return dict(tab.value(expression))


def test_a_printed_dashboard_equals_the_report(tab: Tab, site: Site, fleet: Fleet) -> None:
    finding = WatchFinding("disk-fills", None, "warning", "94 % of / is used", NOW)
    usage = (UsageRow("2026-11-24", "alice", "qwen36", 1200, 3, 400_000, 51_234, 9.0, 0),)
    visit(tab, site, 3, width=720)
    fleet.take("spark-1", glance(status={"watch": WatchReport(NOW + 99, (finding,))}, usage=usage))
    tab.wait(f"{card('spark-1')}.includes('1,200 requests, 3 failed, 451,234 tokens')")
    assert tab.call("Page.printToPDF")["data"].startswith("JVBERi")  # base64 of "%PDF"
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    tab.call("Emulation.setEmulatedMedia", media="print", features=dark)
    page = probed(tab)
    printed = tab.value("document.body.innerText")
    shown = "[...document.querySelectorAll('button, dialog')].filter((e) => e.offsetParent).length"
    controls, ink = tab.value(f"[{shown}, getComputedStyle(document.body).color]")
    closed = tab.value("document.querySelectorAll('section > details:not([open])').length")
    tab.call("Emulation.setEmulatedMedia", media="")
    for text in ("spark-1: disk-fills", "docker system df", "alice: qwen36", "Printed "):
        assert text in printed
    assert (closed, controls, ink) == (0, 0, "rgb(22, 25, 29)")
    assert (page["scroll_width"], page["sticking_out"], page["faint"]) == (720, [], [])


@pytest.mark.parametrize(
    ("width", "dark"), [(360, False), (768, True), (1280, True), (2560, False)]
)
def test_the_dashboard_fits_and_is_readable(
    tab: Tab, site: Site, fleet: Fleet, width: int, dark: bool
) -> None:
    visit(tab, site, 3, width=width, dark=dark)
    fleet.take("spark-1", glance())
    fleet.take("spark-2", OSError("not reached: " + "x" * 300))
    tab.wait(f"{card('spark-1')}.includes('serves') && {card('spark-2')}.includes('off')")
    seen = probed(tab)
    assert (seen["scroll_width"], seen["dark"]) == (width, dark)
    assert (seen["sticking_out"], seen["squeezed"], seen["faint"]) == ([], [], [])


def test_every_control_can_be_reached_by_keyboard_and_has_a_name(
    tab: Tab, site: Site, fleet: Fleet
) -> None:
    fleet.take("spark-1", glance())
    tab.wait(f"{card('spark-1')}.includes('serves')")
    names = "[...document.querySelectorAll('button')].filter((b) => b.offsetParent)" \
        ".map((b) => b.getAttribute('aria-label') || b.textContent)"  # fmt: skip
    shown = tab.value(names)
    assert "Log of qwen36 on spark-1" in shown
    assert len(set(shown)) == len(shown)
    reached = set()
    for _ in range(2 * len(shown)):
        for kind in ("keyDown", "keyUp"):
            tab.call("Input.dispatchKeyEvent", type=kind, key="Tab", windowsVirtualKeyCode=9)
        reached.add(tab.value("document.activeElement.getAttribute('aria-label')"))
    assert set(shown) <= reached
    assert tab.value("document.getElementById('front').getAttribute('role')") == "status"
    assert tab.value("document.querySelectorAll('svg:not([role=img][aria-label])').length") == 0


def test_the_page_stays_smooth_with_thirty_hosts_and_sixty_services(tab: Tab) -> None:
    names = tuple(f"service-{n}" for n in range(2))
    many = Fleet({f"spark-{n}": expected(*names, memory=MEMORY) for n in range(30)})
    with serving(many, empty) as site:
        visit(tab, site, 30)
        for n in range(30):
            many.take(f"spark-{n}", glance(names=names))
        tab.wait("document.querySelectorAll('.service').length == 60")
        began, script = time.monotonic(), tab.metric("ScriptDuration")
        layout = tab.metric("LayoutDuration") + tab.metric("RecalcStyleDuration")
        # Each host answers once in five seconds, and every figure changes.
        for step in range(60):
            at = 200.0 + step
            many.take(f"spark-{step % 30}", glance(at * (1 + step % 7 / 10), names=names))
            time.sleep(max(0.0, began + (step + 1) / 6 - time.monotonic()))
        seconds = time.monotonic() - began
        script = (tab.metric("ScriptDuration") - script) / seconds * 1000
        layout += -(tab.metric("LayoutDuration") + tab.metric("RecalcStyleDuration"))
        print(f"script {script:.1f} ms, layout {-layout / seconds * 1000:.1f} ms a second")
        assert script < 50


def test_a_page_reports_a_lost_controller(
    tab: Tab, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(fleet, empty) as site:
        visit(tab, site, 3)
        fleet.take("spark-1", glance())
        tab.wait(f"{card('spark-1')}.includes('serves')")

        def ended(*_: Any) -> Any:
            raise OSError

        monkeypatch.setattr(fleet, "since", ended)  # the command has ended
        fleet.take("spark-1", glance())
    tab.wait("document.getElementById('front').innerText.includes('connection to sparkwright')")
    tab.wait(f"{card('spark-1')}.includes('off, last seen')")
