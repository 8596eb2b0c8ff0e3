"""Phases of a boot, by logs of the real engine, and the time that each took before."""

import json
import os
import re
from pathlib import Path

import pytest

from sparkwright.engines import log_patterns
from sparkwright.host.boot_phases import BootPhases
from sparkwright.host.release import Phase
from sparkwright.text import shipped_yaml
from tests.host.programs import program
from tests.unit.builders import ROOT, kept_service

LOGS = ROOT / "tests/fixtures/vllm/h200-0.24.0"
#: Of the day when the logs were taken, as seconds of their clock.
BEGAN = 1 * 3600 + 11 * 60 + 18.0


def _stamped(log: str) -> list[str]:
    """Lines as ``journalctl --output=short-unix`` prints them; one without a time is the last's."""
    lines, at = [], BEGAN
    for line in log.splitlines():
        if clock := re.search(r" (\d\d):(\d\d):(\d\d)[ ,]", line):
            hours, minutes, seconds = map(int, clock.groups())
            at = hours * 3600.0 + minutes * 60 + seconds
        lines.append(f"{at:.6f} host sparkwright-a[9]: {line}")
    return lines


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BootPhases:
    hidden = "case $* in *--all*) cat ;; *) sed 's/\\x1b.*/[104B blob data]/' ;; esac"
    script = f'echo "$@" > {tmp_path}/asked; {hidden} < {tmp_path}/log'
    program(tmp_path / "bin", "journalctl", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "services/a").mkdir(parents=True)
    (tmp_path / "log").touch()
    return _boot(tmp_path)


def _boot(place: Path) -> BootPhases:
    return BootPhases(kept_service("r", "a", place), log_patterns("boot"), BEGAN)


def test_phases_of_a_real_boot_and_what_they_took_last_time(
    boot: BootPhases, tmp_path: Path
) -> None:
    lines = _stamped((LOGS / "8b-first.log").read_text())
    seen = [boot.now()]
    for count in range(len(lines)):
        (tmp_path / "log").write_text("\n".join(lines[: count + 1]))
        seen.append(boot.now())
    names = list(dict.fromkeys(phase.name for phase in seen))
    assert names == [
        "starting", "weights into memory", "compiling", "capturing graphs", "first answers",
    ]  # fmt: skip
    assert {phase.expected for phase in seen} == {None}
    boot.keep(BEGAN + 160)
    (tmp_path / "log").write_text("\n".join(lines[:7]))
    assert _boot(tmp_path).now() == Phase("weights into memory", BEGAN + 35, 5.0, 600)


@pytest.mark.parametrize("log", ["8b-second.log", "pair-first.log", "pair-second.log"])
def test_every_phase_is_in_every_log(boot: BootPhases, tmp_path: Path, log: str) -> None:
    (tmp_path / "log").write_text("\n".join(_stamped((LOGS / log).read_text())))
    assert boot.now().name == "first answers"
    phases = shipped_yaml.read(ROOT / "sparkwright/engines/vllm/log.yaml")["boot"].values()
    assert list(boot._began) == ["starting", *phases]


def test_an_engine_that_died_begins_anew_and_lines_of_the_boot_before_do_not_count(
    boot: BootPhases, tmp_path: Path
) -> None:
    engine = "sparkwright-a[9]: (EngineCore pid=1) INFO Initializing a V1 LLM engine"
    again = "systemd[1]: sparkwright-a.service: Scheduled restart job, restart counter is at 1."
    lines = [
        f"{BEGAN - 0.5:.6f} host sparkwright-a[8]: Application startup complete.",
        f"{BEGAN + 5:.6f} host {engine}", "-- Boot 1 --", f"{BEGAN + 9:.6f} host {again}",
    ]  # fmt: skip
    for count, phase in enumerate(["starting", "weights into memory", None, "starting"]):
        (tmp_path / "log").write_text("\n".join(lines[: count + 1]))
        assert phase in (boot.now().name, None)
    assert boot.now().began == BEGAN + 9
    assert (
        f"--unit sparkwright-a.service --since @{BEGAN + 9:.0f}" in (tmp_path / "asked").read_text()
    )


def test_a_record_that_is_none_is_passed_over(tmp_path: Path, boot: BootPhases) -> None:
    for text in ("[]", '{"starting": "long"}', "torn"):
        (tmp_path / "services/a/boot.json").write_text(text)
        assert _boot(tmp_path).now() == Phase("starting", BEGAN, None, 600)


def test_lines_that_compose_erases_the_line_before_are_read(
    boot: BootPhases, tmp_path: Path
) -> None:
    lines = (LOGS / "by-roles/first-start.log").read_text()
    assert "\x1b[2K" in lines
    (tmp_path / "log").write_text(lines)
    boot.now()
    boot.keep(1795430522)
    assert list(json.loads((tmp_path / "services/a/boot.json").read_text())) == [
        "starting", "weights into memory", "compiling", "capturing graphs", "first answers",
    ]  # fmt: skip
