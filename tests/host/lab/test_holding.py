"""The holder of the lab, and the message for others: without a fleet, and in a folder of the
test's.
"""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.holding import LabIsHeldError, held

ROOT = Path(__file__).resolve().parents[3]
START = "import sys, time; from pathlib import Path; from lab.holding import *; "
HOLD = (
    START
    + "\nwith held('tests', file=Path(sys.argv[1])): print('held', flush=True); time.sleep(99)"
)
TRY = START + "\nwith held('another', file=Path(sys.argv[1])): print('held', flush=True)"
WAIT = TRY.replace("file=", "wait=True, file=")


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
    """A foreign process that holds the lab."""
    process = start(file, code=code)
    try:
        assert line(process) == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_second_user_is_told_holder_time_and_remedy_at_once(file: Path) -> None:
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


def test_processes_of_a_killed_holder_lose_the_lab(file: Path, tmp_path: Path) -> None:
    """The program must not continue with the fleet as if it still held it."""
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
def test_a_waiting_process_gets_the_lab_next(file: Path, number: signal.Signals) -> None:
    """The file may be left behind, or removed on release."""
    with another(file) as other:
        waiting = start(file, code=WAIT)
        assert waiting.stderr is not None
        assert f"held by process {other.pid}" in waiting.stderr.readline()
        assert waiting.poll() is None
        other.send_signal(number)
        code, text = ended(waiting)
        assert (code, text.splitlines()[0]) == (0, "held")
    assert not file.exists()
