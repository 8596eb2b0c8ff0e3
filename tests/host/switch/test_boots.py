"""A boot: compiled code is kept for its image, GPU and driver, unless it is bad; phases from
logs of the real engine, and their former durations.
"""

import json
import os
import re
from pathlib import Path

import pytest

from sparkwright.engines import log_patterns
from sparkwright.host.boot_caches import Caches
from sparkwright.host.boot_phases import BootPhases
from sparkwright.host.release import Phase
from sparkwright.text import shipped_yaml
from tests.host.programs import program
from tests.unit.builders import ROOT, kept_service

GB10, NEWER = "NVIDIA GB10, 580.95.05\n", "NVIDIA GB10, 590.10\n"
BOOT = 900.0


class Host:
    """A service's home, its releases, and its starts."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.now = 1_000_000.0
        for name, image in (("aaa", "vllm:sha256-1"), ("bbb", "vllm:sha256-1"), ("ccc", "x:2")):
            path = home / "releases" / name
            path.mkdir(parents=True)
            (path / "release.json").write_text(json.dumps({"image": image}))
        self.release("aaa")

    def release(self, name: str) -> None:
        link = self.home / "current"
        link.unlink(missing_ok=True)
        link.symlink_to(f"releases/{name}")

    def start(self, hardware: str = GB10) -> Path:
        """Begin a start; return the directory that the container gets."""
        cache = Caches(self.home).before(hardware)
        assert (self.home / "caches/current").resolve() == cache.resolve()
        return cache

    def end(self, after: float, *, well: bool = False) -> None:
        self.now += after
        Caches(self.home).after(BOOT, well, self.home / "mark")

    def serves(self, name: str) -> None:
        """Write the file that marks a start as good, a minute after the start: the file of the
        health check, or of a deploy.
        """
        self.now += 60
        (self.home / name).touch()
        os.utime(self.home / name, (self.now, self.now))

    def serve(self, text: str, hardware: str = GB10) -> Path:
        """Run a first start, which compiles and serves."""
        cache = self.start(hardware)
        (cache / "compiled").write_text(text)
        self.end(BOOT * 2, well=True)
        return cache


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    result = Host(tmp_path / "qwen36")
    monkeypatch.setattr("time.time", lambda: result.now)
    return result


def compiled(cache: Path) -> str | None:
    """Compiled code in a start's cache; None without compiled code."""
    path = cache / "compiled"
    return path.read_text() if path.exists() else None


def test_another_driver_or_image_has_another_cache_and_old_caches_are_removed(host: Host) -> None:
    first = host.serve("580")
    assert compiled(host.start(NEWER)) is None
    assert not first.exists()
    host.serve("590", NEWER)
    host.release("ccc")
    assert compiled(host.start(NEWER)) is None
    host.end(BOOT * 2, well=True)
    host.release("aaa")  # the image is kept, and so is its cache
    assert compiled(host.start(NEWER)) == "590"
    (host.home / "releases/ccc/release.json").unlink()
    host.start(NEWER)
    directories = sum(path.is_dir() for path in (host.home / "caches").iterdir())
    assert directories == 2  # the cache, and `current`, which leads to it


def test_a_reverted_release_keeps_newly_compiled_code(host: Host) -> None:
    """The bad cache must not come back with the release."""
    host.serve("bad")
    host.release("bbb")
    host.start()
    host.end(10)
    host.release("aaa")
    host.start()
    host.end(10)
    cache = host.start()
    (cache / "compiled").write_text("anew")
    host.serves("mark")
    host.end(60, well=True)  # the next deploy stops the service after a minute
    host.release("bbb")
    assert compiled(host.start()) == "anew"


def test_a_cache_that_was_not_the_cause_is_restored(host: Host) -> None:
    """A bad setting fails with and without the cache, three times; the former release starts
    quickly."""
    host.serve("good")
    host.release("bbb")
    for expected in ("good", None, "good"):
        assert compiled(host.start()) == expected
        host.end(10)
    host.release("aaa")
    assert compiled(host.start()) == "good"


def test_an_interrupted_first_boot_leaves_no_cache(host: Host) -> None:
    (host.start() / "compiled").write_text("hal")
    host.end(60)
    assert compiled(host.start()) is None


@pytest.mark.parametrize("file", ["mark", "boot.json"])
def test_a_killed_start_that_served_keeps_its_cache(host: Host, file: str) -> None:
    (host.start() / "compiled").write_text("first")
    host.serves(file)
    host.end(10)
    assert compiled(host.start()) == "first"
    host.end(10)  # a mark of an earlier start does not count
    assert compiled(host.start()) is None


def test_a_stop_during_a_boot_keeps_the_cache(host: Host) -> None:
    host.serve("good")
    for well in (True, False, True):  # the second start fails, as without a GPU
        (host.start() / "partial").touch()
        host.end(5, well=well)
    assert compiled(host.start()) == "good"


def test_only_the_owner_may_read_a_cache(host: Host) -> None:
    before = os.umask(0)
    try:
        cache = host.start()
    finally:
        os.umask(before)
    assert {item.stat().st_mode & 0o777 for item in (cache, host.home / "caches")} == {0o700}


@pytest.mark.parametrize("state", ["", "[]", "{}", '{"key": "x"}', "nul\x00"])
def test_a_truncated_state_file_is_replaced(host: Host, state: str) -> None:
    host.serve("good")
    (host.home / "caches/state.json").write_text(state)
    host.end(1)
    assert compiled(host.start()) == "good"


LOGS = ROOT / "tests/fixtures/vllm/h200-0.24.0"
#: Time of the first log line, in seconds of the day.
BEGAN = 1 * 3600 + 11 * 60 + 18.0


def _stamped(log: str) -> list[str]:
    """Lines as ``journalctl --output=short-unix`` prints them; a line without a time belongs to the
    previous line.
    """
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


def test_phases_of_a_real_boot_have_their_last_durations(boot: BootPhases, tmp_path: Path) -> None:
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


def test_lines_of_the_previous_boot_are_ignored(boot: BootPhases, tmp_path: Path) -> None:
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


def test_an_invalid_record_is_skipped(tmp_path: Path, boot: BootPhases) -> None:
    for text in ("[]", '{"starting": "long"}', "torn"):
        (tmp_path / "services/a/boot.json").write_text(text)
        assert _boot(tmp_path).now() == Phase("starting", BEGAN, None, 600)


def test_lines_after_an_erase_sequence_are_read(boot: BootPhases, tmp_path: Path) -> None:
    lines = (LOGS / "by-roles/first-start.log").read_text()
    assert "\x1b[2K" in lines
    (tmp_path / "log").write_text(lines)
    boot.now()
    boot.keep(1795430522)
    assert list(json.loads((tmp_path / "services/a/boot.json").read_text())) == [
        "starting", "weights into memory", "compiling", "capturing graphs", "first answers",
    ]  # fmt: skip
