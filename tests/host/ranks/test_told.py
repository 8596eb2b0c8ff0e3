"""Report on a rank: a follower answers nobody, and is well while it serves."""

import json
from pathlib import Path

import pytest

from sparkwright.host.lib import ranks, systemd
from sparkwright.host.lib.ranks import SERVING, STATE, WAITING, RankState
from sparkwright.host.lib.records import encode
from sparkwright.host.ranks.engine import Rank, ended
from sparkwright.host.service import SmokeRequest
from sparkwright.host.smoke import check
from sparkwright.host.watch import watch
from sparkwright.host.watch.state import WatchedService
from tests.host.ranks.units import Cluster


def _state(home: Path, *, number: int = 1, step: str = SERVING, missing: str = "") -> None:
    home.mkdir(exist_ok=True)
    rank_state = RankState(number, "a" * 12, step, 1.0, (missing,) if missing else ())
    (home / STATE).write_text(json.dumps(encode(rank_state)))


def _request(home: Path) -> SmokeRequest:
    return SmokeRequest(
        "chat", "sparkwright-chat.service", "127.0.0.1", 1, str(home / "secrets.env"), ("chat",),
        1, 1, follower=True,
    )  # fmt: skip


@pytest.fixture
def active(monkeypatch: pytest.MonkeyPatch) -> None:
    def unit(*_: object, **__: object) -> dict[str, str]:
        return {"ActiveState": "active"}

    monkeypatch.setattr(systemd, "unit", unit)


def test_a_follower_that_serves_is_well(tmp_path: Path, active: None) -> None:
    _state(tmp_path)
    answer = check.run(_request(tmp_path))
    (item,) = answer.checks
    assert (item.name, item.ok, item.detail) == ("rank", True, "rank 1 serves with its head")
    result = ranks.health(tmp_path)
    assert result is not None
    assert result.code == 200


@pytest.mark.parametrize("number", [0, 1])
def test_a_rank_that_waits_says_for_whom(tmp_path: Path, active: None, number: int) -> None:
    _state(tmp_path, number=number, step=WAITING, missing="rank 1 (spark-2) is not there")
    result = ranks.health(tmp_path)
    assert result is not None
    assert (result.code, result.message) == (
        None, "it waits for the other ranks: rank 1 (spark-2) is not there",
    )  # fmt: skip
    (item,) = check.run(_request(tmp_path)).checks
    assert not item.ok
    assert "rank 1 (spark-2) is not there" in item.detail


def test_a_head_that_serves_is_asked_like_any_service(tmp_path: Path) -> None:
    _state(tmp_path, number=0)
    assert ranks.health(tmp_path) is None
    assert ranks.health(tmp_path / "another") is None


def test_a_state_that_is_no_good_is_none(tmp_path: Path) -> None:
    (tmp_path / STATE).write_text('{"number": "x"')
    assert ranks.health(tmp_path) is None


def test_what_ended_without_a_word_does_not_serve(tmp_path: Path) -> None:
    """Killed, or without power: what it wrote last is not true any more."""
    unit = Cluster(tmp_path).followers[0]
    home, config = unit.home, unit.config
    _state(home)
    ended(unit.service, config)
    assert ranks.missing(home) == "it waits for the other ranks: its unit has ended"
    _state(home, step=WAITING, missing="the head is gone")
    ended(unit.service, config)
    assert ranks.missing(home) == "it waits for the other ranks: the head is gone"


def test_the_watch_asks_no_follower(tmp_path: Path, active: None) -> None:
    _state(tmp_path)
    seen = watch.service(WatchedService("chat", "127.0.0.1", 1, 600), tmp_path, {})
    assert (seen.health, seen.metrics) == (200, {})


def test_a_rank_has_its_own_failures_for_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts with every session of its cluster, and systemd counts that."""
    monkeypatch.setattr(systemd, "unit", lambda *_, **__: {"NRestarts": "7"})
    watched_service = WatchedService("chat", "127.0.0.1", 1, 600)
    assert watch.service(watched_service, tmp_path, {}).restarts == 7
    _state(tmp_path)
    assert watch.service(watched_service, tmp_path, {}).restarts == 0
    unit = Cluster(tmp_path / "other").followers[0]
    for _ in range(2):
        Rank(unit.service, unit.config, "", unit.service.release).failed(
            "its engine ended with code 1"
        )
    assert ranks.unit(unit.home, {"NRestarts": "7"}) == {"NRestarts": "2"}
    Rank(unit.service, unit.config, "", "b" * 12).say(SERVING)
    assert ranks.unit(unit.home, {"NRestarts": "7"}) == {"NRestarts": "0"}
