"""A new user's first week, and ten tasks: every block of both pages, unchanged, on the fleet."""

import http.client
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab import fleet as machines_of_the_lab
from lab import machines
from lab.layout import DEPOT, HUB_PORT, REGISTRY_PORT, SSH, USER
from tests.fleet.first_week import PAGE, Block, Shell, blocks, tasks
from tests.fleet.site import MACHINES, ROOT, bare, ssh

HOSTS = ("spark-1", "rtx-1")
REPOSITORY = "aeon-7/aeon-vllm-ultimate"
_INDEX = "application/vnd.oci.image.index.v1+json"
#: Settings of a site in the lab that a site at home does not need: its registry, its hub, its
#: images.
_LAB = f"""
image_mirrors = {{
    "ghcr.io": "http://{DEPOT.address}:{REGISTRY_PORT}",
    "registry-1.docker.io": "http://{DEPOT.address}:{REGISTRY_PORT}",
}}
hub_endpoint = "http://{DEPOT.address}:{HUB_PORT}"
catalog_directories = [{str(ROOT / "lab/catalog")!r}]
disk_headroom_gib = 1
drop_caches = False
second_boot = False
rollout = {{"soak_seconds": 2, "notice_seconds": 1}}
"""
#: Parts of a laptop that this machine lacks: another Python, pipx, and a user who confirms.
_STAND_INS = """
scp() { mkdir -p ~/laptop; cp -r "$2" ~/laptop; cd ~/laptop/my-lab; }
pipx() { sparkwright --version; }
sparkwright() {
    case "$1 $2" in
    up*|deploy*|rollback*|remove*|"models prune") command sparkwright "$@" --yes ;;
    *) command sparkwright "$@" ;;
    esac
}
"""
_SERVICES = ("docker-registry", "sparkwright-lab-hub")


@pytest.fixture
def week(fleet: None, wheel: Path, tmp_path: Path) -> Iterator[Shell]:
    """A user with a wheel and an empty folder, and two unused boxes."""
    machines_of_the_lab.up()
    for host in HOSTS:
        bare(host)
    _nightly()
    (tmp_path / "dist").mkdir()
    shutil.copy(wheel, tmp_path / "dist")
    # `python3 -m venv` of the page uses the tests' Python.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(Path(sys.base_prefix) / "bin/python3")
    shell = Shell(tmp_path, tmp_path / "state")
    with (tmp_path / "state").open("a") as state:
        state.write(f'export PATH="{tmp_path}/bin:$PATH"\n')
        mine = Path.home() / ".config/pip/pip.conf"
        settings = {"PIP_CONFIG_FILE": str(mine)} if mine.exists() else {}
        settings |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        state.writelines(f"export {key}={shlex.quote(item)}\n" for key, item in settings.items())
    yield shell
    _internet("start")
    machines_of_the_lab.up()
    for host in HOSTS:
        bare(host)


@pytest.mark.timeout(1200)
def test_every_block_of_the_first_week_runs(week: Shell) -> None:
    """One test runs all blocks, since each block depends on the previous block."""
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        match block.before.split():
            case ["off", host]:
                machines.cut_power(MACHINES[host])
            case ["on", _]:
                machines_of_the_lab.up()
            case ["internet", state]:
                _internet("stop" if state == "gone" else "start")
        week.run(block, 400)
        match block.after:
            case "lab":
                _into_the_lab(week)
            case "nothing is left":
                for host in HOSTS:
                    _empty(host)


@pytest.mark.timeout(900)
def test_every_block_of_the_ten_tasks_runs(week: Shell) -> None:
    """A folder as in the first week, beside a serving Spark."""
    first = [block for block in blocks(PAGE.read_text()) if block.title.startswith("Monday")]
    for block in first[:3]:
        week.run(block, 400)
        if block.after:
            _into_the_lab(week)
    for block in blocks(tasks()):
        week.run(replace(block, code=_STAND_INS + block.code), 400)
    assert week.folder.name == "my-lab"
    assert "laptop" in week.folder.parts
    assert ssh("rtx-1", "docker ps -aq") == ""


def _into_the_lab(week: Shell) -> None:
    """Make the site that `up` would make, with the lab's addresses of hosts, images and models."""
    week.run(Block("a site in the lab", "sparkwright init .\n"), 60)
    names = week.folder / "ssh_config"
    names.write_text(
        "".join(f"Host {host}\n HostName {MACHINES[host].address}\n" for host in HOSTS)
        + f"Host *\n User {USER}\n IdentityFile {SSH}/id_ed25519\n"
        f" UserKnownHostsFile {SSH}/known_hosts\n"
    )
    with (week.folder / "group_data/all.py").open("a") as file:
        file.write(f"{_LAB}ssh_config_file = {str(names)!r}\n")
    cache = ROOT / ".sparkwright/cache"
    if cache.is_dir():  # the bundles for hosts are made only once
        shutil.copytree(cache, week.folder / ".sparkwright/cache")


def _internet(word: str) -> None:
    for unit in _SERVICES:
        machines.inside(DEPOT, ["systemctl", word, unit])


def _nightly() -> None:
    """The page's bad tag: the lab's image whose answers consist of `!`, by another name."""
    connection = http.client.HTTPConnection(DEPOT.address, REGISTRY_PORT, timeout=20)
    path = f"/v2/{REPOSITORY}/manifests/"
    connection.request("GET", f"{path}lab-garbage", headers={"Accept": _INDEX})
    answer = connection.getresponse()
    body, kind = answer.read(), answer.getheader("Content-Type", _INDEX)
    assert answer.status == 200, body
    connection.request("PUT", f"{path}2026-09-20-nightly", body, {"Content-Type": kind})
    answer = connection.getresponse()
    assert answer.status == 201, answer.read()
    connection.close()


def _empty(host: str) -> None:
    """Check that a box has all files and images of the time before its first deploy."""
    assert ssh(host, "docker ps -aq") == ""
    assert ssh(host, "ls /etc/systemd/system | grep -c sparkwright || true") == "0"
    assert ssh(host, "sudo find /opt/models -name '*.safetensors' 2>/dev/null | head -1") == ""
