"""The serving fake over several ranks: how the real vLLM was seen to join, and to lose one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.host.lab.test_serving import (
    Server,
    free_port,
    launched,
    make_model,
    wait_healthy,
    wait_until,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("ranks") / "model")


@contextmanager
def rank(model: Path, number: int, port: int, ranks: int = 2) -> Iterator[Server]:
    words = ["--nnodes", str(ranks), "--node-rank", str(number)]
    words += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
    with launched(model, *words, *(["--headless"] if number else []), healthy=False) as started:
        yield started


def joined(server: Server, ranks: int = 2) -> None:
    wait_until(lambda: f"world_size={ranks}" in server.log.read_text(), 40)


def test_followers_join_and_the_head_alone_answers(model: Path) -> None:
    port = free_port()
    with rank(model, 0, port, 3) as head, rank(model, 1, port, 3) as one:
        wait_until(lambda: "Automatically detected" in head.log.read_text(), 40)
        assert "world_size" not in head.log.read_text()
        with rank(model, 2, port, 3) as two:
            wait_healthy(head, 40)
            for follower in (one, two):
                joined(follower, 3)
                with pytest.raises(OSError, match="refused"):
                    follower.ask("GET", "/health")
            assert head.chat("17 + 25?")["choices"]
            two.process.send_signal(signal.SIGTERM)
            assert two.process.wait(30) == 0


def test_a_head_without_its_follower_is_well_until_it_is_asked(model: Path) -> None:
    port = free_port()
    with rank(model, 0, port) as head, rank(model, 1, port) as follower:
        wait_healthy(head, 40)
        follower.process.send_signal(signal.SIGKILL)
        follower.process.wait(5)
        assert head.ask("GET", "/health")[0] == 200
        body = {"model": "tiny", "messages": [{"role": "user", "content": "?"}]}
        assert head.ask("POST", "/v1/chat/completions", body)[0] == 500
        assert head.process.wait(30) == 0


def test_a_follower_of_an_earlier_head_is_of_no_use_to_the_next(model: Path) -> None:
    port = free_port()
    with rank(model, 0, port) as head, rank(model, 1, port) as orphan:
        wait_healthy(head, 40)
        head.process.send_signal(signal.SIGTERM)
        assert head.process.wait(30) == 0
        assert orphan.process.poll() is None
        with rank(model, 0, port) as again:
            wait_until(lambda: "Automatically detected" in again.log.read_text(), 40)
            with pytest.raises(AssertionError):
                wait_healthy(again, 3)
