"""Caches that an engine compiled at its first start are kept; a bad cache is dropped."""

import time

import pytest

from tests.fleet.site import Site, inside, until

HOST = "spark-1"
UNIT = "sparkwright-qwen36.service"
CACHES = "/opt/sparkwright/services/qwen36/caches"
#: Lines of vLLM 0.24.0's log.
LOADED, COMPILED = "Directly load the compiled graph(s)", "Compiling a graph for compile range"


def _restarted() -> str:
    """Restart the service, wait until it is healthy, and return its journal since the restart."""
    time.sleep(1)  # `--since` accepts only whole seconds
    since = inside(HOST, "date", "+%Y-%m-%d %H:%M:%S")
    inside(HOST, "systemctl", "reset-failed", UNIT)  # systemd allows three starts an hour
    inside(HOST, "systemctl", "restart", UNIT)
    arguments = ["journalctl", "-u", UNIT, "--since", since, "-o", "cat"]
    until(lambda: "Application startup complete" in inside(HOST, *arguments), "it serves", 90)
    return inside(HOST, *arguments)


@pytest.mark.usefixtures("converged")
def test_a_second_start_loads_the_code_of_the_first_start() -> None:
    text = _restarted()
    assert LOADED in text
    assert COMPILED not in text
    assert inside(HOST, "stat", "-Lc", "%U %a", CACHES, f"{CACHES}/current").split("\n") == [
        "root 700",
        "root 700",
    ]


@pytest.mark.usefixtures("converged")
def test_an_engine_killed_after_it_served_loads_its_compiled_code() -> None:
    """Without the caches, compilation took minutes on an H200, and takes longer on a Spark."""
    _restarted()
    marked = f"test /run/sparkwright-health/qwen36.well -nt {CACHES}/state.json; echo $?"
    until(lambda: inside(HOST, "sh", "-c", marked) == "0", "health marks that it serves", 60)
    time.sleep(1)
    since = inside(HOST, "date", "+%Y-%m-%d %H:%M:%S")
    inside(HOST, "docker", "kill", "sparkwright-qwen36")
    journal = ["journalctl", "-u", UNIT, "--since", since, "-o", "cat"]
    until(lambda: "Application startup complete" in inside(HOST, *journal), "it serves", 90)
    text = inside(HOST, *journal)
    assert LOADED in text
    assert COMPILED not in text


@pytest.mark.faults
def test_a_cache_that_breaks_the_start_is_replaced(converged: Site) -> None:
    broken = f"echo broken > $(find -L {CACHES}/current -name graph)"
    inside(HOST, "sh", "-c", broken)
    text = _restarted()
    assert text.index("invalid load key") < text.index(COMPILED)
    assert LOADED in _restarted()
    graph = f"cat $(find -L {CACHES}/current -name graph)"
    assert inside(HOST, "sh", "-c", graph) != "broken"
    assert converged.deploy("--limit", HOST).changed == set()


def test_a_gb10_that_compiled_is_restarted_once(converged: Site) -> None:
    """The fleet's inventory turns the second start off, which saves time in other tests."""
    inside(HOST, "systemctl", "stop", UNIT)
    inside(HOST, "sh", "-c", f"rm -rf {CACHES}/*")
    time.sleep(1)  # `--since` accepts only whole seconds
    since = inside(HOST, "date", "+%Y-%m-%d %H:%M:%S")
    run = converged.deploy("--limit", HOST, "--data", "second_boot=True")
    assert run.code == 0, run.output
    text = inside(HOST, "journalctl", "-u", UNIT, "--since", since, "-o", "cat")
    assert text.index(COMPILED) < text.index(LOADED)
    assert "blocks" in inside(HOST, "cat", "/opt/sparkwright/state/switch/progress.json")
    assert converged.deploy("--limit", HOST, "--data", "second_boot=True").changed == set()
    # The inventory's setting changes the record again, and nothing restarts.
    container = inside(HOST, "docker", "ps", "--quiet", "--no-trunc")
    assert converged.deploy("--limit", HOST).changed == {HOST}
    assert inside(HOST, "docker", "ps", "--quiet", "--no-trunc") == container
