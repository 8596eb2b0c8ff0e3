"""`sparkwright top`, with a pyinfra that says what a test wants: plain, as JSON, on a screen."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sparkwright.cli import main
from sparkwright.cli.lib import hosts
from sparkwright.host.lib.records import encode
from tests.unit.results.test_load import SPARK, after
from tests.unit.site_terminal import terminal, written

#: Writes the lines of said.json to its descriptor, each after its seconds.
PYINFRA = f"""#!{sys.executable}
import json, os, pathlib, sys, time
arguments = dict(word.split("=", 1) for word in sys.argv if "=" in word)
pathlib.Path("called.txt").write_text(" ".join(sys.argv))
for seconds, line in json.loads(pathlib.Path("said.json").read_text()):
    time.sleep(seconds)
    os.write(int(arguments["feed"]), (json.dumps(line) + "\\n").encode())
print("the words of pyinfra", file=sys.stderr)
sys.exit(int(pathlib.Path("code.txt").read_text()))
"""
WELL = {"host": "box", "load": encode(SPARK)}
LATER = {"host": "box", "load": encode(after(2, generated=1241.0))}
SILENT = {"host": "box", "silent": "not reached: \x1b[2Jtimed out"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = written(tmp_path / "site", 8000)
    (folder / "pyinfra").write_text(PYINFRA)
    (folder / "pyinfra").chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(hosts, "pyinfra", lambda: str(folder / "pyinfra"))
    return folder


def says(site: Path, *said: tuple[float, dict[str, Any]], code: int = 0) -> None:
    (site / "said.json").write_text(json.dumps(said))
    (site / "code.txt").write_text(str(code))


def run(*words: str) -> Result:
    done = CliRunner().invoke(main, ["top", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_once_is_one_plain_table_of_two_looks(site: Path) -> None:
    says(site, (0, WELL), (0, LATER))
    done = run("--once")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "HOST  SERVICE  TOK/S  RUN  WAIT  KV   ACC  GPU  W   °C  MEM GiB",
        "box   qwen36   120.5  3    1     42%  -    96%  61  64  100/120",
        "",
    ]
    called = (site / "called.txt").read_text()
    assert "roles.status.load feed=" in called
    assert " interval=1.0 count=2 planless=true answers=" in called


def test_a_table_each_interval(site: Path) -> None:
    says(site, (0, WELL), (1.3, LATER), (1.3, SILENT))
    done = run("--interval", "1")
    assert done.exit_code == 1
    first, *_, last = done.stdout.strip().split("\n\n")
    assert "box   qwen36   -  " in first
    assert "box   -        not reached: \\x1b[2Jtimed out" in last
    assert "\x1b" not in done.stdout


def test_json_is_a_line_each(site: Path) -> None:
    says(site, (0, WELL), (0, LATER))
    (found,) = json.loads(run("--once", "--json").stdout)
    assert (found["host"], found["service"], found["tokens"]) == ("box", "qwen36", 120.5)
    says(site, (0, SILENT), code=1)
    done = run("--once", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)[0]["problem"] == "not reached: \x1b[2Jtimed out"
    assert "\x1b" not in done.stdout


def test_where_pyinfra_contacts_nobody_its_words_are_shown(site: Path) -> None:
    says(site, code=1)
    done = run("--once")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "the words of pyinfra" in done.stderr


def test_at_a_terminal_one_screen_is_drawn_anew_and_ctrl_c_gives_the_old_one_back(
    site: Path,
) -> None:
    says(site, (0, WELL), (0.5, LATER), (600, SILENT))
    program = (
        "import sparkwright.cli.lib.hosts as hosts; from sparkwright.cli import main;"
        f"hosts.pyinfra = lambda: {str(site / 'pyinfra')!r}; main(prog_name='sparkwright')"
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
