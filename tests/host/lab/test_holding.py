"""Who holds the lab, and what others are shown: without a fleet, and in a place of the test's."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.holding import LabIsHeldError, held, holder, kept

ROOT = Path(__file__).resolve().parents[3]
START = "import sys, time; from pathlib import Path; from lab.holding import *; "
HOLD = (
    START
    + "\nwith held('tests', file=Path(sys.argv[1])): print('held', flush=True); time.sleep(99)"
)
TRY = START + "\nwith held('another', file=Path(sys.argv[1])): print('held', flush=True)"
WAIT = TRY.replace("file=", "wait=True, file=")
KEEP = START + "\nkeep(int(sys.argv[2]), 'demo', file=Path(sys.argv[1]))"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lab" / "holder"


def python(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


def start(*arguments: object, code: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(python(code, *arguments), cwd=ROOT, stdout=pipe, stderr=pipe, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and everything printed."""
    out, err = process.communicate(timeout=20)
    return process.returncode, out + err


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@contextmanager
def another(file: Path, code: str = HOLD) -> Iterator[subprocess.Popen[str]]:
    """A process that is none of ours and holds the lab."""
    process = start(file, code=code)
    try:
        assert line(process) == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_another_one_is_reported_at_once_who_holds_it_since_when_and_what_to_do(file: Path) -> None:
    with another(file) as other:
        time.sleep(1.1)
        began = time.monotonic()
        code, text = ended(start(file, code=TRY))
        assert time.monotonic() - began < 2
        assert code == 1
        assert f"held by process {other.pid} (tests) of {ROOT} since 20" in text
        assert re.search(r"\([1-9] s ago\)", text)
        assert f"end process {other.pid}" in text
        assert "--wait" in text
        assert "Traceback" not in text
        with pytest.raises(LabIsHeldError), held("tests", file=file):
            pass


def test_what_a_holder_starts_works_for_it_and_environment_is_not_asked(file: Path) -> None:
    with held("tests", file=file):
        with held("lab up", file=file):
            pass
        result = holder(file)
        assert result is not None
        assert result.purpose == "tests"  # the inner one has released nothing
        arguments = ["env", "-i", "sh", "-c", '"$@"; exit $?', "sh", *python(TRY, file)]
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "held\n"), done.stderr
        assert holder(file) == result


def test_what_a_killed_holder_left_running_works_for_nobody(file: Path, tmp_path: Path) -> None:
    """It must not go on with the fleet as if it were still held for it."""
    go = tmp_path / "go"
    late = f"import os\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
    nested = START + late + TRY.removeprefix(START).strip()
    first = START + (
        "import subprocess"
        "\nwith held('tests', file=Path(sys.argv[1])):"
        f"\n  subprocess.Popen([sys.executable, '-c', {nested!r}, sys.argv[1]])"
        "\n  print('held', flush=True); time.sleep(99)"
    )
    with another(file, first) as killed:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with another(file) as other:
            go.touch()
            _, text = killed.communicate(timeout=20)
            assert f"held by process {other.pid}" in text


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_one_who_waits_gets_it_when_the_holder_ends(file: Path, number: signal.Signals) -> None:
    """By a file that was left behind as well as by one that was removed on release."""
    with another(file) as other:
        waiting = start(file, code=WAIT)
        assert waiting.stderr is not None
        assert f"held by process {other.pid}" in waiting.stderr.readline()
        assert waiting.poll() is None
        other.send_signal(number)
        code, text = ended(waiting)
        assert (code, text.splitlines()[0]) == (0, "held")
    assert not file.exists()


class TestThroughAKeeper:
    """As a user who is not root does it: sudo starts the keeper."""

    def test_it_holds_for_the_one_who_asked(self, file: Path) -> None:
        with kept(python(KEEP, file, os.getpid())):
            result = holder(file)
            assert result is not None
            assert (result.purpose, result.process.pid) == ("demo", os.getpid())
            with held("lab up", file=file):  # works for the one who asked
                pass
        assert not file.exists()

    def test_it_is_free_when_that_one_is_killed(self, file: Path) -> None:
        code = START + (
            "import os"
            "\nwith kept([sys.executable, '-c', sys.argv[2], sys.argv[1], str(os.getpid())]):"
            "\n  print('held', flush=True); time.sleep(99)"
        )
        client = start(file, KEEP, code=code)
        assert line(client) == "held\n"
        client.send_signal(signal.SIGKILL)
        client.wait()
        with held("tests", file=file):  # at once, or in the moment that the keeper takes to end
            pass

    def test_it_reports_who_else_holds_it(self, file: Path) -> None:
        code = START + "\nwith kept(sys.argv[1:]): print('held')"
        with another(file) as other:
            result, text = ended(start(*python(KEEP, file, os.getpid()), code=code))
        assert result == 1
        assert text.count(f"held by process {other.pid} (tests)") == 1
        assert "Traceback" not in text
