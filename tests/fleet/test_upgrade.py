"""What version 0.1 began or left on hosts: brought to its end by its own programs, then taken over.

tests/fixtures/version-0.1/switch has its programs as it laid them out on hosts.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from lab import fleet, machines
from tests.fleet.bad_tags import NEW
from tests.fleet.proxies import status
from tests.fleet.site import (
    MACHINES,
    ROOT,
    Site,
    answers,
    bare,
    container,
    inside,
    release,
    ssh,
    until,
)
from tests.fleet.test_switch_faults import PLACE, assert_whole, release_hold, step

PROGRAMS = ROOT / "tests/fixtures/version-0.1/switch"
#: The last commit of version 0.1.
BEFORE = "ad7498a"
#: As its roles/serving/switch.py wrote them into a request.
ENTRY = (
    f'import sys; sys.path.insert(0, "{PLACE}"); from roles.serving.host import transaction; '
    "sys.exit(transaction.main(sys.argv[1:]))"
)
SETTLE = [
    *("systemd-run", "--quiet", "--no-block", "--unit=sparkwright-switch"),
    *("--property=Restart=on-abnormal", "--property=RestartSec=1"),
    *("--property=SuccessExitStatus=3 4", "--"),
    *("/usr/bin/python3", "-IS", "-c", ENTRY, "--run", f"{PLACE}/request.json"),
]
RECOVER = f"""\
# Written by sparkwright. Changes made here are overwritten.
[Unit]
Description=sparkwright: bring a switch to its end that a power cut came into
ConditionPathExists={PLACE}/request.json
RequiresMountsFor={PLACE}

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 -IS -c '{ENTRY}' --settle {PLACE}/request.json

[Install]
WantedBy=multi-user.target
"""


def begin(site: Site, held: dict[str, str]) -> None:
    """Have hosts be in the middle of a switch that version 0.1 began, held at a step.

    What a request asks for is the same in both versions, so
    the new one makes it; what works on it is not.
    """
    for host in held:
        inside(host, "sh", "-c", f"mkdir -p {PLACE}; rm -f {PLACE}/progress.json {PLACE}/hold-*")
        inside(host, "touch", f"{PLACE}/hold-writing")
    site.rollout(canaries=len(held))  # all at once
    limits = [word for host in held for word in ("--limit", host)]
    run = site.start("--data", f"image_tag={NEW}", *limits)
    try:
        until(lambda: all(step(host) == "writing" for host in held), "all are begun", 60)
    finally:
        run.kill()
        run.wait()
    for host, name in held.items():
        inside(host, "systemctl", "stop", "sparkwright-switch")
        request: dict[str, Any] = json.loads(inside(host, "cat", f"{PLACE}/request.json"))
        request.update(settle=SETTLE, recover=RECOVER)
        inside(host, "sh", "-c", f"rm -r {PLACE}/*")
        place = MACHINES[host].root / PLACE.removeprefix("/")
        shutil.copytree(PROGRAMS, place, dirs_exist_ok=True)
        (place / "request.json").write_text(json.dumps(request))
        (place / f"hold-{name}").touch()
        if name == "writing":  # before it writes its unit: the host has that of the switch before
            unit = MACHINES[host].root / "etc/systemd/system/sparkwright-recover.service"
            unit.write_text(RECOVER)
            inside(host, "systemctl", "daemon-reload")
        inside(host, *SETTLE)
    for host, name in held.items():
        until(lambda host=host, name=name: step(host) == name, f"{host} is {name}", 60)


def cut_power(host: str) -> None:
    """At once, and on again; what was held on its disk is let go meanwhile."""
    machines.cut_power(MACHINES[host])
    upper = MACHINES[host].home / "upper" / PLACE.removeprefix("/")
    for hold in upper.glob("hold-*"):
        hold.unlink()
    fleet.up()


def ended_by_version_before(host: str) -> None:
    until(lambda: step(host) == "ended", f"{host} has ended", 120)
    assert_whole(host)
    unit = ssh(host, "sudo cat /etc/systemd/system/sparkwright-recover.service")
    assert "roles.serving.host import transaction" in unit


@pytest.mark.timeout(400)
def test_a_switch_of_the_version_before_is_brought_to_its_end(converged: Site) -> None:
    """One host is followed by a controller of this version, the other loses power."""
    before = {host: release(host) for host in ("spark-1", "spark-2")}
    begin(converged, {"spark-1": "stopping", "spark-2": "switching"})
    cut_power("spark-2")

    new = ("--data", f"image_tag={NEW}", "--limit", "spark-1")
    said = converged.folder / "said"
    with said.open("w") as file:
        run = subprocess.Popen(
            converged.command("--yes", *new), cwd=converged.folder,
            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
        until(lambda: "a switch that was begun before is still under way" in said.read_text(),
              "it is noticed")  # fmt: skip
        time.sleep(1)
        assert run.poll() is None
        release_hold("spark-1")
        assert run.wait(timeout=120) == 0, said.read_text()
    assert "service qwen36" not in said.read_text()  # nothing was left to switch
    ended_by_version_before("spark-1")
    assert release("spark-1") != before["spark-1"]
    assert answers(converged, "spark-1")
    assert converged.deploy(*new).changed == set()

    ended_by_version_before("spark-2")
    assert release("spark-2") == before["spark-2"]
    assert answers(converged, "spark-2")
    assert converged.deploy("--limit", "spark-2").changed == set()


@pytest.mark.faults
@pytest.mark.timeout(400)
@pytest.mark.parametrize("held", ["writing", "draining", "starting", "proving"])
def test_a_power_cut_at_its_other_steps(converged: Site, held: str) -> None:
    begin(converged, {"spark-2": held})
    cut_power("spark-2")
    ended_by_version_before("spark-2")
    assert answers(converged, "spark-2")
    # The next switch is this version's, and so is what a later boot would go on with.
    converged.deploy("--limit", "spark-2", "--data", f"image_tag={NEW}")
    assert converged.deploy("--limit", "spark-2").changed == {"spark-2"}
    unit = ssh("spark-2", "sudo cat /etc/systemd/system/sparkwright-recover.service")
    assert "from sparkwright.host import switch" in unit
    assert_whole("spark-2")


@pytest.fixture(scope="module")
def before(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A checkout of the last commit of version 0.1."""
    folder = tmp_path_factory.mktemp("before")
    packed = folder / "before.tar"
    git = ["git", "-C", str(ROOT), "archive", "-o", str(packed), BEFORE]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"git's history here does not have {BEFORE}: {done.stderr.strip()}")
    shutil.unpack_archive(packed, folder / "site")
    shutil.copytree(site.folder / ".sparkwright/cache", folder / "site/.sparkwright/cache")
    return Site.lying_at(folder / "site")


#: When the proxy was started.
_BOOTED = "systemctl show -P ActiveEnterTimestamp sparkwright-gateway"
#: The programs of the watch stay on hosts.
WATCH = "configured the watch"


TOKENIZE = '{"model": "qwen36-fast", "prompt": "one two"}'
#: How a service of the version before stays as it is, with what vLLM leaves open.
OPEN = '"proxy": False, "bind": "0.0.0.0", "silenced": {"open-routes": "as it was before 0.2"},'


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("proxy", [False, True])
def test_a_fleet_of_the_version_before_is_switched_once(
    converged: Site, before: Site, tmp_path: Path, proxy: bool
) -> None:
    """The first deploy of this version replaces units and programs that stay on hosts; HAProxy runs
    on, and the second deploy has nothing to do."""
    host = "spark-1"
    bare(host)
    now = Site(tmp_path)
    # Keys and records go; the bundles for hosts, which the first run here made, stay.
    for path in (before.folder / ".sparkwright").iterdir():
        if path.is_dir() and path.name != "cache":
            shutil.rmtree(path)
        elif path.is_file():
            path.unlink()
    text = (ROOT / "group_data/sparks.py").read_text()
    was, kept = ('"door": True,', "") if proxy else ("", OPEN)
    for one, words in ((before, was), (now, kept)):
        port = f'"port": 8000, {words}'
        (one.folder / "group_data/sparks.py").write_text(text.replace('"port": 8000,', port))
    assert before.deploy("--limit", host).changed == {host}
    assert before.deploy("--limit", host).changed == set()
    shutil.copytree(before.folder / ".sparkwright", now.folder / ".sparkwright", dirs_exist_ok=True)
    runs, since = container(host), ssh(host, _BOOTED)
    changes = now.deploy("--limit", host).host(host)["changes"]
    # Its unit is another.
    assert any(line.startswith("service qwen36: release ") for line in changes), changes
    assert WATCH in changes
    assert container(host) != runs
    assert answers(now, host)
    if proxy:
        assert ssh(host, _BOOTED) == since
    assert now.deploy("--limit", host).changed == set()
    bare(host)


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_a_service_of_the_version_before_gets_its_proxy_in_one_switch(
    converged: Site, before: Site, tmp_path: Path
) -> None:
    """By the defaults of both versions: open before, and behind a proxy afterwards."""
    host, address = "spark-1", MACHINES["spark-1"].address
    bare(host)
    now = Site(tmp_path)
    shutil.rmtree(before.folder / "group_data")
    shutil.copytree(ROOT / "group_data", before.folder / "group_data")
    assert before.deploy("--limit", host).changed == {host}
    assert status(address, 8000, "POST", "/tokenize", body=TOKENIZE) == 200
    shutil.copytree(before.folder / ".sparkwright", now.folder / ".sparkwright", dirs_exist_ok=True)
    run = now.deploy("--limit", host)
    assert len(re.findall(r"^.*service qwen36: release.*restart$", run.output, re.M)) >= 1
    assert sum(one.startswith("down for") for one in run.host(host)["changes"]) == 1
    assert status(address, 8000, "POST", "/tokenize", body=TOKENIZE) == 401
    assert status(address, 8000, "POST", "/tokenize", now.key, body=TOKENIZE) == 200
    with pytest.raises(ConnectionRefusedError):
        status(address, 18000, "GET", "/health")
    assert answers(now, host)
    assert now.deploy("--limit", host).changed == set()
    bare(host)
