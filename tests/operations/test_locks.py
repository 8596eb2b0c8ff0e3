"""One run at a time on a host: the lock as requested, refused, taken over and released."""

import os
import subprocess
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.facts.asking import HostError
from sparkwright.host.lock import LockAnswer, LockRequest, Owner
from sparkwright.host.observe import ObservationRequest
from sparkwright.operations import Directory, directories
from sparkwright.operations.lib import locks
from sparkwright.run import site
from sparkwright.run.site import Invocation
from tests.operations.harness import ANN, FakeHost, Said, as_json, fake, run
from tests.unit.builders import probe

ROOT = "/opt/sparkwright"
TAKE = as_json(LockRequest(f"{ROOT}/state", take=locks.OWNER))


def _dead() -> Owner:
    """A run of this machine that died without releasing its lock."""
    process = subprocess.Popen(["true"])
    process.wait()
    return replace(locks.OWNER, token="t1", by="bob@here", pid=process.pid, since=940.0)


def _taken_by(owner: Owner) -> Any:
    """Another run's lock, until a run breaks it in that owner's name."""

    def answer(request: Any) -> LockAnswer:
        if request["instead_of"] and request["instead_of"]["token"] == owner.token:
            return LockAnswer(True)
        return LockAnswer(False, owner, 1000.0)

    return answer


def _host(lock: Any = None, **changes: Any) -> FakeHost:
    return fake(probe(**changes), lock=lock or LockAnswer(True))


def take(host: FakeHost, *, break_lock: bool = False) -> None:
    host.memory.break_lock = break_lock
    locks.take(host)  # type: ignore[arg-type]


def release(host: FakeHost) -> None:
    locks.release(host)  # type: ignore[arg-type]


def test_the_lock_is_taken_once_in_a_run() -> None:
    host = _host()
    take(host)
    take(host)
    assert host.request("lock") == TAKE
    assert TAKE["take"]["pid"] == os.getpid()
    assert host.memory.locked == ROOT
    # The request contains the token that releases the lock, so no other user may see the request.
    assert host.asked[0].hidden


def test_the_lock_of_a_roll_out_names_the_hosts_batch() -> None:
    hosts: dict[str, Any] = {"spark-1": _host(), "spark-2": _host()}
    for host in hosts.values():
        host.data = SimpleNamespace(dict=dict, get=lambda _, usual=None: usual)
    site.unplanned(hosts, Invocation("lab.py", switches=True), "no plan")
    take(hosts["spark-2"])
    assert hosts["spark-2"].request("lock")["take"]["batch"] == "batch 2 of 2"


@pytest.mark.parametrize(
    "owner",
    [
        replace(locks.OWNER, token="t1", by="bob@here"),  # another run in this very process
        replace(locks.OWNER, token="t1", pid=1),  # a process of another user
        replace(_dead(), machine="elsewhere"),  # a process id has no meaning on another machine
        Owner("t1", "bob@here", locks.OWNER.machine, None),
    ],
)
def test_a_run_that_may_be_alive_keeps_its_lock(owner: Owner) -> None:
    host = _host(_taken_by(owner))
    with pytest.raises(HostError, match="is at work on this host"):
        take(host)
    assert len(host.asked) == 1


def test_a_run_that_died_on_this_machine_is_taken_over() -> None:
    host = _host(_taken_by(_dead()))
    take(host)
    first, second = (item.request for item in host.asked)
    assert first == TAKE
    assert second == {**TAKE, "instead_of": second["instead_of"]}
    assert second["instead_of"]["token"] == "t1"
    assert host.lines == ["taking over the lock of bob@here (for 1 min)"]
    assert host.memory.locked == ROOT


def test_the_first_run_at_a_broken_lock_gets_the_lock() -> None:
    """A third run took the lock meanwhile: the message names this run, and its lock is not
    broken."""
    cat = replace(ANN, token="t2", by="cat@desk")
    owners = [ANN, cat]
    host = _host(lambda _: LockAnswer(False, owners.pop(0), 1000.0))
    with pytest.raises(HostError, match=r"^cat@desk"):
        take(host, break_lock=True)
    assert len(host.asked) == 2


def test_a_host_changed_since_its_observation_is_left_alone() -> None:
    host = _host(LockAnswer(True, last="t9"), last_lock="t8")
    with pytest.raises(HostError, match="another run changed this host since its"):
        take(host)
    # This run has taken the lock over, and releases it with the connection.
    assert host.memory.locked == ROOT
    host = _host(LockAnswer(True, last="t8"), last_lock="t8")
    take(host)


def test_the_lock_is_released_once_even_after_a_lost_connection() -> None:
    host = _host()
    release(host)
    assert host.asked == []
    take(host)
    release(host)
    release(host)
    assert host.programs == ["lock", "lock"]
    assert host.asked[1].request == as_json(
        LockRequest(f"{ROOT}/state", release=locks.OWNER.token)
    )  # fmt: skip
    assert host.memory.locked is None
    take(host)
    host.answers["lock"] = OSError("Socket is closed")
    release(host)
    assert host.memory.locked is None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (OSError("Socket closed"), "sparkwright-lock: the connection is lost (Socket closed)"),
        (EOFError(), "sparkwright-lock: the connection is lost (EOFError)"),
        (TimeoutError(), "sparkwright-lock: no answer within 30 s"),
        (Said(err="a\nsudo: a password is required\n", ok=False),
         "sparkwright-lock: sudo: a password is required"),
        (Said(ok=False), "sparkwright-lock: failed without output"),
    ],
)  # fmt: skip
def test_a_silent_host_gets_no_lock(answer: Any, message: str) -> None:
    host = _host(answer)
    with pytest.raises(HostError) as raised:
        take(host)
    assert str(raised.value) == message
    assert host.memory.locked is None


@pytest.mark.parametrize(
    ("owner", "break_lock", "answer"),
    [
        (None, False, None),
        (ANN, False, "ann@laptop (for 3 min) is at work on this host: "
         "wait, or break the lock with --data break_lock=True"),
        (ANN, True, None),
        (_dead(), False, None),
    ],
)  # fmt: skip
def test_the_other_holder_is_read_from_the_observation(
    owner: Owner | None, break_lock: bool, answer: str | None
) -> None:
    host = _host(lock=owner and as_json(owner))
    host.memory.observation = probe(lock=owner and as_json(owner))
    host.memory.break_lock = break_lock
    assert locks.in_the_way(host) == answer  # type: ignore[arg-type]
    assert host.asked == []


def test_the_lock_of_another_root_is_ignored() -> None:
    """The lock below another services_root was last held by another run, yesterday."""
    request = ObservationRequest(services_root="/srv/sw", directories=("/srv/sw",))
    host = fake(probe(), directories=None)
    host.answers["observe"] = probe(directories={"/srv/sw": None}, last_lock="yesterday")
    host.answers["lock"] = {"held": True, "last": "yesterday"}
    wanted = [Directory("/srv/sw")]
    host.memory.services_root = "/srv/sw"
    ran = run(host, directories.present, wanted, execute=True)
    assert host.request("observe")["services_root"] == request.services_root
    assert host.request("lock")["state"] == "/srv/sw/state"
    assert ran.well, host.lines
