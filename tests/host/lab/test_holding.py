"""The message about the lab's holder, in a folder of the test and without a fleet."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.holding import LabIsHeldError, held
from tests.unit.builders import ROOT

HOLD = """
import sys, time
from pathlib import Path
from lab.holding import held
with held("tests", file=Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(99)
"""


def test_a_second_user_sees_holder_time_and_remedy_at_once(
    tmp_path: Path,
) -> None:
    file = tmp_path / "lab/holder"
    command = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            time.sleep(1.1)
            began = time.monotonic()
            with pytest.raises(LabIsHeldError) as refused, held("tests", file=file):
                pass
            assert time.monotonic() - began < 2
        finally:
            other.kill()
    text = str(refused.value)
    assert f"held by process {other.pid} (tests) of {ROOT} since 20" in text
    assert re.search(r"\([1-9] s ago\)", text)
    assert f"end process {other.pid}" in text
    assert "--wait" in text
