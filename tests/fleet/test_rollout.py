"""A new tag on the fleet is proved on the canary first and rolled back on failure; and the user's
views of the roll-out."""

import re
from collections.abc import Iterator

import pytest

from tests.fleet.bad_tags import DEADLINES, NEW, rolling_fleet
from tests.fleet.site import GOOD, Site, answers, container, release, ssh, until


@pytest.fixture(scope="module")
def rolling(site: Site) -> Iterator[Site]:
    """The fleet on the newest tag, with the lab's bad tags in the catalog."""
    with rolling_fleet(site):
        yield site


def fault(name: str) -> str:
    """A setting that makes the fake of one group fail."""
    return f'"environment": {{"FAKE_VLLM_FAULT": "{name}"}},'


def releases() -> dict[str, str]:
    return {host: release(host) for host in GOOD}


def test_a_new_tag_is_rolled_out_host_by_host_and_back_on_request(rolling: Site) -> None:
    before = releases()
    rolling.rollout(canaries=["rtx-1"], batch=1)
    run = rolling.deploy("--data", f"image_tag={NEW}", refused={"hopper-1"})
    assert all(release != before[host] for host, release in releases().items())
    switched = re.findall(r"\[(\S+)\] +down for", run.output)
    assert switched == ["rtx-1", "spark-1", "spark-2"]
    for host in GOOD:
        assert run.host(host)["services"][0]["smoke"]["failures"] == []

    # A repeated deploy has no changes; the plan without the tag differs.
    assert rolling.deploy("--data", f"image_tag={NEW}", refused={"hopper-1"}).changed == set()
    limit = ("--limit", "sparks", "--limit", "rtx-1")
    status = rolling.sparkwright("status", "inventory/virtual.py", *limit, code=1)
    assert status.count("2026-06-18-v0.23.0-dflashfix") == 3
    assert status.count("differs: release") == 3
    text = rolling.sparkwright("diff", "inventory/virtual.py", "--limit", "spark-1", code=1)
    assert "-# Written by sparkwright: service qwen36" in text
    assert "+# Written by sparkwright: service qwen36" in text
    printed = rolling.sparkwright("history", "inventory/virtual.py", *limit)
    newest = printed.splitlines()[-3:]
    assert [line.split()[2] for line in newest] == ["rtx-1", "spark-1", "spark-2"]
    assert all("good" in line for line in newest)

    back = rolling.sparkwright("rollback", "inventory/virtual.py", *limit, "--yes")
    assert releases() == before
    assert "rolled back" in back
    status = rolling.sparkwright("status", "inventory/virtual.py", *limit)
    assert status.count("as planned") == 3
    again = rolling.deploy(refused={"hopper-1"})
    changes = {line for host in GOOD for line in again.host(host)["changes"]}
    assert changes <= {"configured the watch"}
    assert releases() == before


def test_a_rollback_to_a_missing_release_is_refused(rolling: Site) -> None:
    arguments = ("inventory/virtual.py", "--limit", "spark-1", "--to", "0" * 12)
    text = rolling.sparkwright("rollback", *arguments, "--yes", code=1)
    assert "has no release 000000000000 here; there are" in text


@pytest.mark.parametrize(
    ("tag", "reason"),
    [
        ("lab-never-healthy", "not healthy after 12 s"),
        ("lab-garbage", "nothing but '!'"),
        # Reverts for other reasons run with the tests of faults.
        pytest.param("lab-wedge", "the engine hangs", marks=pytest.mark.faults),
        pytest.param("lab-crash", "the service died within 8 s of use", marks=pytest.mark.faults),
        pytest.param(
            "lab-oom",
            "a restart does not fix it: weights, graphs and KV cache",
            marks=pytest.mark.faults,
        ),
    ],
)
def test_a_bad_tag_stops_at_the_canary_and_is_reverted(
    rolling: Site, tag: str, reason: str
) -> None:
    before = releases()
    rolling.rollout(soak_seconds=8)
    run = rolling.run("--yes", "--data", f'image_tag="{tag}"')
    assert run.code == 1
    assert run.refused == {*GOOD, "hopper-1"}
    assert reason in run.output
    assert releases() == before
    assert all(answers(rolling, host) for host in GOOD)
    row = {host: run.host(host)["services"][0] for host in GOOD}
    assert [row[host]["outcome"] for host in GOOD] == ["reverted", "left", "left"]
    assert {host: item["release"] for host, item in row.items()} == before
    assert "not switched, since spark-1 failed" in run.output
    rolling.rollout()
    assert rolling.deploy(refused={"hopper-1"}).changed == set()


@pytest.mark.faults
def test_on_failure_fleet_reverts_every_host(rolling: Site) -> None:
    before = releases()
    rolling.rollout(canaries=2, on_failure="fleet")
    rolling.edit("group_data/rtx50.py", DEADLINES, f"{DEADLINES} {fault('wedge')}")
    try:
        run = rolling.run("--yes", "--data", f"image_tag={NEW}")
    finally:
        rolling.edit("group_data/rtx50.py", fault("wedge"), "")
    assert run.code == 1
    assert releases() == before
    outcomes = [run.host(host)["services"][0]["outcome"] for host in GOOD]
    assert outcomes == ["taken back", "taken back", "reverted"], run.output
    rolling.rollout()


@pytest.mark.faults
def test_an_unprepared_host_is_left_out_or_stops_the_rollout(rolling: Site) -> None:
    before = releases()
    rolling.gpu("spark-2", "driver-dead")
    rolling.rollout(unprepared="stop")
    run = rolling.run("--yes", "--data", f"image_tag={NEW}")
    assert "spark-2, hopper-1 could not be prepared" in run.output
    assert releases() == before
    rolling.rollout(unprepared="leave")
    rolling.deploy("--data", f"image_tag={NEW}", refused={"spark-2", "hopper-1"})
    changed = {host for host, item in releases().items() if item != before[host]}
    assert changed == {"spark-1", "rtx-1"}
    rolling.gpu("spark-2")
    rolling.rollout()
    rolling.deploy(refused={"hopper-1"})
    assert releases() == before


@pytest.mark.faults
def test_a_second_run_names_the_first_run(rolling: Site) -> None:
    ssh("spark-1", "sudo mkdir -p /opt/sparkwright/state/switch;"
        " sudo touch /opt/sparkwright/state/switch/hold-writing")  # fmt: skip
    first = rolling.start("--limit", "spark-1", "--data", f"image_tag={NEW}")
    try:
        lock = "/opt/sparkwright/state/lock.json"
        until(lambda: "pid" in ssh("spark-1", f"sudo cat {lock} || true"), "the lock")
        second = rolling.run("--yes", "--limit", "spark-1", "--data", f"image_tag={NEW}")
        assert second.code == 1
        assert "is at work on this host: wait, or break the lock" in second.output
    finally:
        ssh("spark-1", "sudo rm /opt/sparkwright/state/switch/hold-writing")
    assert first.wait(timeout=120) == 0
    rolling.deploy("--limit", "spark-1")


@pytest.mark.faults
def test_a_crash_loop_ends_and_is_reported(rolling: Site) -> None:
    """The engine dies after the end of the watch, and after its proxy has found it healthy."""
    rolling.rollout(soak_seconds=0)
    dying = f'"port": 8000, {fault("crash-after=12")}'
    rolling.edit("group_data/rtx50.py", DEADLINES, dying)
    rolling.deploy("--limit", "rtx-1")
    rolling.edit("group_data/rtx50.py", dying, DEADLINES)
    state = "systemctl is-active sparkwright-qwen36 || true"
    until(lambda: ssh("rtx-1", state) == "failed", "systemd gives up", 120)
    status = rolling.sparkwright("status", "inventory/virtual.py", "--limit", "rtx-1", code=1)
    assert "given up" in status
    rolling.rollout()
    run = rolling.deploy("--limit", "rtx-1")
    assert run.changed == {"rtx-1"}
    assert container("rtx-1")
