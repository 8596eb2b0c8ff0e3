"""Output of a run before its changes; printing it changes nothing."""

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fleet.site import GOOD, Site, container, fingerprint, inside, release, ssh

HOST = "spark-1"
ONE = ("--limit", HOST)


def _json(site: Site, *arguments: str, code: int) -> dict[str, Any]:
    """Standard output of a run with --json, which must be one document."""
    done = subprocess.run(
        site.command("--json", *arguments), cwd=site.folder, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return {**json.loads(done.stdout), "message": done.stderr}


def test_a_diff_shows_texts_and_no_secret(converged: Site) -> None:
    """Present and new Compose file, units and HAProxy's configuration."""
    bare = '"port": 8000, "proxy": False,'
    converged.edit("group_data/sparks.py", '"port": 8000,', bare)
    converged.deploy(*ONE)
    converged.edit("group_data/sparks.py", bare, '"port": 8000,')
    new = converged.run("--dry", "--diff", *ONE)
    assert f"Will change {HOST}" not in new.output
    compose = r"Will change /opt/sparkwright/services/qwen36/releases/\S+/compose\.yaml"
    assert re.search(compose, new.output)
    assert re.search(r"^ +\[spark-1\] +- .*8000", new.output, re.M), new.output
    assert re.search(r"^ +\[spark-1\] +\+ .*http\.sock", new.output, re.M), new.output
    assert "Will create /opt/sparkwright/gateway/haproxy.cfg" in new.output
    assert re.search(r"\+ +bind .*:8000", new.output)
    assert "Will create /etc/systemd/system/sparkwright-gateway.service" in new.output
    assert converged.key not in new.output

    done = converged.run("--yes", "--diff", *ONE)
    assert done.code == 0, done.output
    assert "Will create /opt/sparkwright/gateway/haproxy.cfg" in done.output
    assert converged.key not in done.output

    converged.edit("templates/gateway/haproxy.cfg.j2", "global", "# mine\nglobal")
    converged.edit("templates/serving/unit.service.j2", "[Unit]", "# mine\n[Unit]")
    run = converged.run("--dry", "--diff", *ONE)
    assert "Will change /opt/sparkwright/gateway/haproxy.cfg" in run.output
    assert "Will change /etc/systemd/system/sparkwright-qwen36.service" in run.output
    assert len(re.findall(r"\+ *# mine", run.output)) == 2, run.output
    assert converged.key not in run.output


def test_standard_output_has_only_json(converged: Site) -> None:
    before = {host: container(host) for host in GOOD}
    home = "/opt/sparkwright/services/qwen36"
    ssh(HOST, f"sudo chmod 644 {home}/secrets.env")
    dry = _json(converged, "--dry", code=1)
    assert dry["results"] is None
    plan = {item["name"]: item["hosts_with_change"] for item in dry["plan"]}
    changing = {name: hosts for name, hosts in plan.items() if hosts}
    assert list(changing.values()) == [[HOST]], changing
    assert "would service qwen36: API key, restart" in dry["message"]
    assert "NOT as planned: hopper-1" in dry["message"]
    assert container(HOST) == before[HOST]

    # A run with --json and without --yes changes no host.
    assert _json(converged, code=1)["results"] is None
    done = _json(converged, "--yes", code=1)
    assert done["results"]["failed_hosts"] == ["hopper-1"]
    succeeded = {item["name"]: item["success"] for item in done["results"]["operations"]}
    assert [hosts for hosts in succeeded.values() if hosts] == [[HOST]]
    assert "serving, changed" in done["message"]
    assert ssh(HOST, f"sudo stat -c %a {home}/secrets.env") == "600"


@pytest.fixture
def unneeded(converged: Site) -> Iterator[str]:
    """An unused model, with a receipt."""
    (current,) = ssh(HOST, "ls -d /opt/models/AEON-7--*/*").splitlines()
    old = f"{current[:-40]}{'0' * 40}"
    inside(HOST, "cp", "-al", current, old)
    receipt = f"{old}/.sparkwright-receipt.json"
    inside(HOST, "sed", "-i", f"s/{current[-40:]}/{'0' * 40}/", receipt)
    yield old
    inside(HOST, "rm", "-rf", old)


def test_pruning_is_shown_then_executed_and_a_second_pruning_finds_no_files(
    converged: Site, unneeded: str
) -> None:
    arguments = f"model AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4@{'0' * 12}"
    before = fingerprint(HOST)
    dry = converged.run("--dry", *ONE, deploy=converged.changing("pruned"))
    # Pruning may remove releases of earlier tests, too.
    shown = re.findall(r"would remove (.+?)\s*$", dry.output, re.M)
    assert arguments in shown
    assert fingerprint(HOST) == before

    done = converged.run("--yes", *ONE, deploy=converged.changing("pruned"))
    assert (done.code, done.host(HOST)["changes"]) == (0, [f"removed {item}" for item in shown])
    ssh(HOST, f"sudo test ! -e {unneeded}; sudo test ! -e /opt/sparkwright/state/lock.json")
    again = converged.run("--yes", *ONE, deploy=converged.changing("pruned"))
    assert (again.code, again.changed) == (0, set())
    assert "No changes" in again.output
    text = converged.sparkwright("models", "prune", "inventory/virtual.py", *ONE, "--yes")
    assert re.match(rf"{HOST}: [0-9.]+ [MG]B in \d+ items\n", text)
    assert text.endswith("freed: 0 bytes\n")


def test_removal_is_shown_then_executed_and_a_second_removal_finds_no_files(
    converged: Site,
) -> None:
    removal = ("--limit", "rtx-1")
    before = (fingerprint("rtx-1"), container("rtx-1"))
    dry = converged.run(
        "--dry", *removal, deploy=converged.changing("removed", "services=lambda _: None")
    )
    for name in ("sparkwright-qwen36.service", "/opt/sparkwright and its images"):
        assert f"would remove {name}" in dry.output
    assert (fingerprint("rtx-1"), container("rtx-1")) == before

    remove = ("remove", "inventory/virtual.py", *removal, "--yes")
    assert converged.sparkwright(*remove, "--service", "qwen37") == (
        "rtx-1: removed nothing\nrtx-1: left service 'qwen37': this service does not exist\n"
    )
    assert converged.sparkwright(*remove, "--service", "qwen36") == (
        "rtx-1: removed service qwen36\n"
    )
    assert ssh("rtx-1", "docker ps -q") == ""
    done = converged.run(
        "--yes", *removal, deploy=converged.changing("removed", "services=lambda _: None")
    )
    assert done.code == 0, done.output
    assert "removed /opt/sparkwright" in done.host("rtx-1")["changes"]
    ssh("rtx-1", "test ! -e /opt/sparkwright")
    again = converged.run(
        "--yes", *removal, deploy=converged.changing("removed", "services=lambda _: None")
    )
    assert (again.code, again.changed) == (0, set())
    assert "No changes" in again.output
    assert converged.sparkwright(*remove) == (
        "rtx-1: removed nothing\nrtx-1: left /opt/models: the models (--weights removes them)\n"
        "rtx-1: deploys use this host again until you remove it from inventory/virtual.py\n"
    )
    assert release("spark-1")
