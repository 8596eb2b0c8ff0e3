"""Faults of downloads: each fetch ends with good files or with one clear error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lab import fleet, machines
from lab.layout import DEPOT
from tests.fleet.downloads import HOST, fetch, journal, parts, whole
from tests.fleet.site import LOCKING, MACHINES, Site, bare, hub, inside, ssh, until

#: The largest file of the lab's body, and its size.
SHARD = "*/model-00003-of-00009.safetensors"


def final_names() -> str:
    """Paths of files under final names."""
    return inside(
        HOST, "sh", "-c", "find /opt/models -path '*/.staging-*' -prune -o -type f -print"
    )


def sent() -> int:
    """Bytes of the shard that the hub has sent."""
    return sum(
        int(entry["bytes"])
        for repository in hub("GET", "/control/counters")["repositories"].values()
        for name, entry in repository["files"].items()
        if name.startswith("model-00003")
    )


@pytest.mark.parametrize("percent", [10, 50, 99])
def test_a_cut_connection_resumes(empty: Site, percent: int) -> None:
    fetch(empty)
    size = sent()
    ssh(HOST, "sudo rm -rf /opt/models/*")
    hub("DELETE", "/control/counters")
    hub("POST", order={"match": SHARD, "drop_at": size * percent // 100, "times": 2})
    fetch(empty)
    assert whole()
    assert sent() < 1.5 * size


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failing_hub_is_retried(empty: Site, status: int) -> None:
    order = {"match": "*", "status": status, "times": 5, "method": "GET"}
    with locked(empty):
        hub("POST", order=order | ({"headers": {"Retry-After": "1"}} if status == 429 else {}))
        fetch(empty)
    assert whole()


def test_a_fetch_waits_for_a_slow_hub(empty: Site) -> None:
    hub("POST", order={"match": SHARD, "sleep": 4.0, "times": 3})
    fetch(empty)
    assert whole()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"truncate": 1_000_000}, "bytes"),
        ({"corrupt_at": 1_000_000}, "came with the wrong content twice"),
    ],
)
def test_a_file_that_stays_corrupt_causes_one_clear_error(
    empty: Site, fault: dict[str, Any], message: str
) -> None:
    hub("POST", order={"match": SHARD, **fault})
    run = fetch(empty, code=1)
    assert message in run.output
    assert "model-00003-of-00009.safetensors" in run.output
    assert "AEON" not in final_names()
    hub("DELETE")
    fetch(empty)
    assert whole()


def test_wrong_bytes_of_the_right_length_are_fetched_again(empty: Site) -> None:
    hub("POST", order={"match": SHARD, "corrupt_at": 1_000_000, "times": 1})
    fetch(empty)
    assert "set aside, fetching it once more" in journal()
    assert whole()


def test_a_wrong_etag_is_harmless_because_content_is_hashed(empty: Site) -> None:
    hub("POST", order={"match": SHARD, "etag": "0" * 64})
    fetch(empty)
    assert whole()


def test_an_unreachable_registry_is_retried_while_the_weights_download(empty: Site) -> None:
    bare(HOST)
    with locked(empty):
        depot("stop")
        try:
            run = empty.start("--limit", HOST, deploy="fetch-deploy.py")
            until(_models_are_there, "the weights arrive all the same", 60)
        finally:
            depot("start")
        assert run.wait(timeout=90) == 0
    assert whole()


def test_a_full_disk_is_reported_and_received_bytes_are_kept(empty: Site) -> None:
    inside(HOST, "mount", "-t", "tmpfs", "-o", "size=36M,mode=755", "models", "/opt/models")
    try:
        hub("POST", order={"match": "*/model-*", "rate": 300_000})
        run = empty.start("--limit", HOST, "--data", "disk_headroom_gib=0",
                          deploy="fetch-deploy.py")  # fmt: skip
        until(lambda: parts() > 6_000_000, "something has come", 30)
        inside(HOST, "sh", "-c", "head -c 24M /dev/zero > /opt/models/someone-elses")
        assert run.wait(timeout=120) == 1
        assert "is full" in journal()
        assert "AEON" not in final_names()
        inside(HOST, "rm", "/opt/models/someone-elses")
        hub("DELETE")
        fetch(empty, "--data", "disk_headroom_gib=0")
        assert whole()
        assert "kept" in journal()
    finally:
        ssh(HOST, "sudo systemctl stop 'sparkwright-fetch*' 'sparkwright-share*'")
        inside(HOST, "umount", "--lazy", "/opt/models")


def test_a_second_run_names_the_run_that_fetches(empty: Site) -> None:
    hub("POST", order={"match": SHARD, "rate": 1_000_000})
    first = empty.start("--limit", HOST, deploy="fetch-deploy.py")
    until(lambda: "sparkwright-fetch" in _units(), "it fetches", 30)
    second = fetch(empty, code=1)
    assert "is at work on this host: wait" in second.output
    assert first.wait(timeout=60) == 0
    assert whole()


def test_a_download_continues_after_a_power_cut(empty: Site) -> None:
    hub("POST", order={"match": SHARD, "rate": 500_000})
    run = empty.start("--limit", HOST, deploy="fetch-deploy.py")
    until(lambda: "sparkwright-fetch" in _units(), "it fetches", 30)
    until(lambda: parts() > 1_000_000, "something has come", 30)
    machines.cut_power(MACHINES[HOST])
    assert run.wait(timeout=120) == 1
    hub("DELETE")
    fleet.up()
    fetch(empty)
    assert whole()


def test_files_with_absurd_times_are_hashed_and_not_fetched(empty: Site) -> None:
    """A clock was wrong, or a backup was restored."""
    fetch(empty)
    ssh(HOST, "sudo find /opt/models -type f -exec touch -d 2031-01-01 {} +")
    hub("DELETE", "/control/counters")
    fetch(empty)
    assert whole()
    assert hub("GET", "/control/counters")["bytes"] < 100_000
    assert fetch(empty).changed == set()


@contextmanager
def locked(site: Site) -> Iterator[None]:
    """Lock of all references, with which the controller sends no request."""
    site.sparkwright(*LOCKING)
    try:
        yield
    finally:
        (site.folder / ".sparkwright/virtual.lock").unlink()


def depot(verb: str) -> None:
    machines.inside(DEPOT, ["systemctl", verb, "docker-registry"])


def _models_are_there() -> bool:
    output = machines.inside(MACHINES[HOST], ["sh", "-c", "ls -d /opt/models/*/*/"]).stdout
    return len(output.split()) == 2


def _units() -> str:
    return inside(HOST, "systemctl", "list-units", "--no-legend", "sparkwright-fetch*")
