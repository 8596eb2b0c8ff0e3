"""Ranks start together, end together, and are one whole cluster again without a person."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from tests.host.ranks.units import NEW, OLD, Cluster, until
from tests.host.serving import free_port

Make = Callable[..., Cluster]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_followers_start_before_their_head(cluster: Make, ranks: int) -> None:
    one = cluster(ranks)
    one.head.start()
    until(lambda: one.head.state)
    assert one.head.state["missing"] == [
        f"rank {number} (spark-{number + 1}) is not there" for number in range(1, ranks)
    ]
    for unit in one.followers[:-1]:
        unit.start()
    last = f"rank {ranks - 1} (spark-{ranks}) is not there"
    until(lambda: one.head.state["missing"] == [last])
    assert not any(unit.engines for unit in one.units)
    one.followers[-1].start()
    one.whole()
    assert all(one.head.began >= unit.began for unit in one.followers)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_engine_that_ends_ends_all_and_all_start_afresh(cluster: Make, number: int) -> None:
    one = cluster(3)
    one.start()
    before = one.whole()
    one.units[number].kill_engine()
    one.whole(before)
    assert [len(unit.engines) for unit in one.units] == [2, 2, 2]
    # It counts as a failed start on the rank whose engine ended, and on the head, whose start it
    # was; systemd gives up after some. The others are not at fault.
    fault = [int(unit in (one.head, one.units[number])) for unit in one.units]
    assert [unit.codes[:1] for unit in one.units] == [[count] for count in fault]
    assert [unit.state["failures"] for unit in one.units] == fault


def test_engines_that_live_and_do_not_generate_begin_a_new_session(cluster: Make) -> None:
    """The head's /health says nothing of the other ranks: a token is asked for."""
    one = cluster(2, free_port())
    one.start()
    before = one.whole()
    time.sleep(4)  # several questions, all of them answered
    assert one.session == before
    stuck = one.head.place / "stuck"
    stuck.touch()
    until(lambda: "do not generate" in str(one.head.state["missing"]))
    stuck.unlink()
    one.whole(before)
    assert [len(unit.engines) for unit in one.units] == [2, 2]
    assert one.head.codes == [1]


def test_engines_that_never_answer_are_no_start(cluster: Make) -> None:
    one = cluster(2, free_port())
    (one.head.place / "stuck").touch()
    one.start()
    one.whole()
    until(lambda: "after the start" in str(one.head.state["missing"]))
    until(lambda: one.head.codes == [1])


def test_a_host_that_falls_silent_ends_the_session(cluster: Make) -> None:
    """As one without power does, or with its cable pulled: nobody hears that it is gone."""
    one = cluster(3)
    one.start()
    before = one.whole()
    one.units[1].cut(signal.SIGSTOP)
    until(lambda: "rank 1 (spark-2)" in str(one.head.state["missing"]))
    assert one.session is None
    # The others wait for it, and use up none of systemd's tries.
    until(lambda: one.head.state["missing"] == ["rank 1 (spark-2) is not there"])
    assert one.head.codes == [0]
    assert one.head.forgiven == 1
    one.units[1].cut()
    one.whole(before)
    assert [len(unit.engines) for unit in one.units] == [2, 2, 2]


def test_a_release_that_a_follower_lacks_is_named_and_waited_for(cluster: Make) -> None:
    one = cluster()
    one.head.stage(NEW)
    (one.head.home / "current").unlink()
    (one.head.home / "current").symlink_to(f"releases/{NEW}")
    one.start()
    lacks = f"rank 1 (spark-2) does not have release {NEW}"
    until(lambda: one.head.state.get("missing") == [lacks])
    assert f"release {NEW}" in str(one.followers[0].state["missing"])
    assert not one.followers[0].engines
    one.followers[0].stage(NEW)
    one.whole()


def test_a_half_staged_release_is_not_run(cluster: Make) -> None:
    one = cluster()
    for unit in one.units:
        unit.stage(NEW)
    (one.followers[0].home / "releases" / NEW / "release.json").unlink()
    (one.head.home / "current").unlink()
    (one.head.home / "current").symlink_to(f"releases/{NEW}")
    one.start()
    until(lambda: "does not have release" in str(one.head.state.get("missing")))
    assert (one.followers[0].home / "current").readlink().name == OLD


def test_an_address_that_is_not_there_yet_is_waited_for(cluster: Make) -> None:
    """The rail's address comes with the cable."""
    one = cluster()
    place = one.head.home / "current/release.json"
    place.write_text(place.read_text().replace(one.address[0], "192.0.2.1"))
    one.head.start()
    until(lambda: "192.0.2.1 is not there" in str(one.head.state.get("missing")))
