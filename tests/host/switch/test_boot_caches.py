"""Compiled code is kept for the image, GPU and driver that it was made with, and not when bad."""

import json
import os
from pathlib import Path

import pytest

from sparkwright.host.boot_caches import Caches

GB10, NEWER = "NVIDIA GB10, 580.95.05\n", "NVIDIA GB10, 590.10\n"
BOOT = 900.0


class Host:
    """A service's home, its releases, and starts of it."""

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
        """A start; returns the directory that the container gets."""
        cache = Caches(self.home).before(hardware)
        assert (self.home / "caches/current").resolve() == cache.resolve()
        return cache

    def end(self, after: float, *, well: bool = False) -> None:
        self.now += after
        Caches(self.home).after(BOOT, well)

    def serve(self, text: str, hardware: str = GB10) -> Path:
        """A first start that compiles and serves."""
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
    """Cache that a start meets; None without one."""
    path = cache / "compiled"
    return path.read_text() if path.exists() else None


def test_another_driver_or_image_has_another_cache_and_the_old_ones_go(host: Host) -> None:
    first = host.serve("580")
    assert compiled(host.start(NEWER)) is None
    assert not first.exists()
    host.serve("590", NEWER)
    host.release("ccc")
    assert compiled(host.start(NEWER)) is None
    host.end(BOOT * 2, well=True)
    host.release("aaa")  # its image is kept: back is quick
    assert compiled(host.start(NEWER)) == "590"
    (host.home / "releases/ccc/release.json").unlink()
    host.start(NEWER)
    kept = [
        path for path in (host.home / "caches").iterdir() if path.is_dir() and not path.is_symlink()
    ]
    assert len(kept) == 1


def test_a_release_that_is_taken_back_leaves_what_was_compiled_anew(host: Host) -> None:
    """The bad cache must not come back with it."""
    host.serve("bad")
    host.release("bbb")
    host.start()
    host.end(10)
    host.release("aaa")
    host.start()
    host.end(10)
    cache = host.start()
    (cache / "compiled").write_text("anew")
    host.end(60, well=True)  # stopped for the next deploy, a minute later
    host.release("bbb")
    assert compiled(host.start()) == "anew"


def test_a_cache_that_was_not_the_cause_comes_back(host: Host) -> None:
    """A bad setting fails with and without it, three times; the release before starts quickly."""
    host.serve("good")
    host.release("bbb")
    for expected in ("good", None, "good"):
        assert compiled(host.start()) == expected
        host.end(10)
    host.release("aaa")
    assert compiled(host.start()) == "good"


def test_a_release_that_is_taken_back_after_one_failure_leaves_the_cache(host: Host) -> None:
    host.serve("good")
    host.release("bbb")
    host.start()
    host.end(10)
    host.release("aaa")
    assert compiled(host.start()) == "good"


def test_half_of_a_first_boot_is_no_cache(host: Host) -> None:
    (host.start() / "compiled").write_text("hal")
    host.end(60)
    assert compiled(host.start()) is None


def test_stopped_while_it_boots_keeps_it(host: Host) -> None:
    host.serve("good")
    host.start()
    host.end(5, well=True)
    assert compiled(host.start()) == "good"


def test_only_its_owner_may_look(host: Host) -> None:
    before = os.umask(0)
    try:
        cache = host.start()
    finally:
        os.umask(before)
    assert {item.stat().st_mode & 0o777 for item in (cache, host.home / "caches")} == {0o700}


@pytest.mark.parametrize("state", ["", "[]", "{}", '{"key": "x"}', "nul\x00"])
def test_a_state_file_that_was_cut_is_started_over(host: Host, state: str) -> None:
    host.serve("good")
    (host.home / "caches/state.json").write_text(state)
    host.end(1)
    assert compiled(host.start()) == "good"
