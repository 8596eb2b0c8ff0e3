"""A file that is large enough for the download libraries, fetched by each library."""

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import heavy
from tests.fleet.downloads import HOST, fetch, journal, parts, whole
from tests.fleet.site import Site, hub, ssh, until

MEGABYTES = 48
NAME = "benchmark-1.dat"
MOVERS = ("hf_transfer", "xet", "http")


@pytest.fixture(scope="module")
def large(alone: Site) -> Iterator[Site]:
    """Add a large file to a model of the hub."""
    with heavy.body(1, MEGABYTES):
        yield alone


@pytest.fixture(params=MOVERS)
def mover(request: pytest.FixtureRequest, large: Site, empty: Site) -> str:
    return str(request.param)


def match(mover: str) -> dict[str, Any]:
    """Pattern of a downloader's requests for the large file, which has several xorbs."""
    return {"match": "/xet/xorbs/*/9" if mover == "xet" else f"/cdn/*/{NAME}", "method": "GET"}


def by(mover: str) -> tuple[str, str]:
    return "--data", f"downloader={mover}"


def sent() -> int:
    """Bytes of the large file that the hub has sent."""
    files = hub("GET", "/control/counters")["repositories"][heavy.BODY]["files"]
    return int(files[NAME]["bytes"])


def test_a_large_file_is_fetched_once_and_completely(large: Site, mover: str) -> None:
    fetch(large, *by(mover))
    assert whole()
    assert sent() < 1.01 * MEGABYTES * heavy.MEGABYTE
    asked = hub("GET", "/control/counters")
    assert asked["requests"].get("xet", 0) > 0 or mover != "xet"
    assert "xet" not in asked["requests"] or mover == "xet"
    assert asked["tokens_at_cdn"] == 0
    assert "ended" not in journal()


def test_a_cut_connection_loses_only_its_bytes(large: Site, mover: str) -> None:
    hub("POST", order={**match(mover), "drop_after": 1_000_000, "times": 2})
    fetch(large, *by(mover))
    assert whole()
    assert sent() < 1.5 * MEGABYTES * heavy.MEGABYTE


def test_a_corrupt_byte_is_detected_and_fetched_again(large: Site, mover: str) -> None:
    hub("POST", order={**match(mover), "corrupt_at": 1_000_000, "times": 1})
    fetch(large, *by(mover))
    assert "set aside, fetching it once more" in journal()
    assert whole()


def test_a_killed_job_is_continued(large: Site, mover: str) -> None:
    way = {"match": "/xet/xorbs/*" if mover == "xet" else f"/cdn/*/{NAME}"}
    hub("POST", order={**way, "rate": 1_000_000})
    run = large.start("--limit", HOST, *by(mover), deploy="fetch-deploy.py")
    until(lambda: parts() > 30_000_000, "a good part has come", 60)
    ssh(HOST, "sudo systemctl kill --kill-whom=all --signal=KILL 'sparkwright-fetch*'")
    hub("DELETE")
    run.wait(timeout=120)
    fetch(large, *by(mover))
    assert whole()
    assert "are already on this host" in journal()
    assert sent() < 1.5 * MEGABYTES * heavy.MEGABYTE
