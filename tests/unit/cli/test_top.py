"""`sparkwright top`, with hosts that a test sets: plain, as JSON, on a screen."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.cli.lib.hosts import Hosts
from sparkwright.facts.answers import HostError
from tests.unit.cli.answering import exits, run
from tests.unit.results.test_load import SPARK, after
from tests.unit.site_terminal import terminal, written

WELL, LATER = SPARK, after(2, generated=1241.0)
SILENT = HostError("not reached: \x1b[2Jtimed out")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = written(tmp_path / "site", 8000)
    monkeypatch.chdir(folder)
    return folder


def says(monkeypatch: pytest.MonkeyPatch, *looks: tuple[float, Any], broken: str = "") -> None:
    """Give the host "box" these samples, each after some seconds."""

    @contextmanager
    def session(*_: Any, **options: Any) -> Iterator[Any]:
        def watch(question: Any) -> Iterator[Any]:
            for seconds, look in looks:
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    time.sleep(0.05)
                    yield None
                yield "box", look

        assert options == {"planless": True}
        yield SimpleNamespace(watch=watch, run=SimpleNamespace(hosts={"box": 0}, broken=broken))

    monkeypatch.setattr(Hosts, "session", session)


def test_top_prints_a_table_each_interval(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, (0, WELL), (1.3, LATER), (1.3, SILENT))
    done = exits(1, "top", "--interval", "1")
    first, *_, last = done.stdout.strip().split("\n\n")
    assert "box   qwen36   -  " in first
    assert "box: not reached: \\x1b[2Jtimed out" in last
    assert "\x1b" not in done.stdout


def test_top_prints_json_lines(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, (0, WELL), (0, LATER))
    (load,) = json.loads(run("top", "--once", "--json").stdout)
    assert (load["host"], load["service"], load["tokens"]) == ("box", "qwen36", 120.5)
    says(monkeypatch, (0, SILENT))
    done = exits(1, "top", "--once", "--json")
    assert json.loads(done.stdout)[0]["problem"] == "not reached: \x1b[2Jtimed out"
    assert "\x1b" not in done.stdout


def test_top_exits_with_2_for_a_broken_inventory(site: Path) -> None:
    (site / "inventory/lab.py").write_text("sparks = [\n")
    done = run("top", "--once")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "inventory/lab.py: line 1" in done.stderr


def test_at_a_terminal_the_screen_is_redrawn_and_ctrl_c_restores_it(
    site: Path,
) -> None:
    program = (
        "import pytest; from sparkwright.cli import main; from tests.unit.cli.test_top import *;"
        "says(pytest.MonkeyPatch(), (0, WELL), (0.5, LATER), (600, SILENT));"
        "main(prog_name='sparkwright')"
    )
    with terminal(site, "top", program=("-c", program)) as shown:
        shown.until("120.5")
        began = time.monotonic()
        shown.type("\x03")
        assert shown.ended() == 130
        assert time.monotonic() - began < 5
    assert "\x1b[?1049h" in shown.got
    assert "\x1b[?1049l" in shown.got
    assert "Traceback" not in shown.got
    with terminal(site, "top", program=("-c", program), env={"TERM": "dumb"}) as shown:
        shown.until("120.5")
        assert "\x1b" not in shown.got


def test_a_watched_status_has_its_own_screen(site: Path) -> None:
    program = (
        "import pytest; from sparkwright.cli import main; from tests.unit.cli.test_top import *;"
        "from tests.unit.results.test_status import answer;"
        "says(pytest.MonkeyPatch(), (0, answer()), (0.5, SILENT), (0.5, answer()), (600, SILENT));"
        "main(prog_name='sparkwright')"
    )
    with terminal(site, "status", "--watch", program=("-c", program)) as shown:
        shown.until("as planned")
        shown.until("box: not reached")
        shown.until("as planned")
        shown.type("\x03")
        assert shown.ended() == 130
    assert "Traceback" not in shown.got
    assert "--watch needs a terminal" in run("status", "--watch").stderr
