"""A third party's deploy: facts and operations as a library, without a site.

The wheel is installed in its own venv, and the site has only two files of this repository.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.layout import DEPOT, HUB_PORT
from sparkwright import facts
from tests.fleet.site import ROOT, ssh
from tests.install.conftest import User

HOSTS = ("spark-1", "rtx-1")
VIEWS = [name for name in vars(facts) if name[0].isupper()]


@pytest.fixture(scope="module")
def deploy(fleet: None, user: User, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run pyinfra in the foreign site's folder."""
    folder = tmp_path_factory.mktemp("foreign") / "site"
    shutil.copytree(ROOT / "tests/fixtures/foreign-site", folder)
    (folder / "group_data").mkdir()
    where = f"http://{DEPOT.address}:{HUB_PORT}/api/models/lab/open-tiny"
    text = subprocess.run(["curl", "-fsS", where], capture_output=True, text=True, check=True)
    commit = json.loads(text.stdout)["sha"]
    (folder / "group_data/all.py").write_text(f"commit = {commit!r}\n")
    cache = ROOT / ".sparkwright/cache"
    if cache.is_dir():  # the bundles for hosts are made only once
        shutil.copytree(cache, folder / ".sparkwright/cache")
    for host in HOSTS:
        ssh(host, "sudo rm -rf /srv/foreign")
    yield folder
    for host in HOSTS:
        ssh(host, "sudo rm -rf /srv/foreign")


def _pyinfra(user: User, folder: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    """JSON that pyinfra prints, without other output."""
    done = user.run("pyinfra", "--json", *arguments, folder=folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return {**json.loads(done.stdout), "message": done.stderr}


def _by_name(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {result["name"]: result for result in results["operations"]}


def test_a_dry_run_reports_changes_and_makes_no_change(deploy: Path, user: User) -> None:
    before = {host: _state(host) for host in HOSTS}
    result = _pyinfra(user, deploy, "--dry", "inventory.py", "deploy.py")
    assert result["results"] is None
    changing = {item["name"]: item["hosts_with_change"] for item in result["plan"]}
    everywhere = sorted(HOSTS)
    assert changing == {
        "GPU": [], "Tools": [], "Directories": everywhere, "Note": everywhere, "Model": everywhere,
    }  # fmt: skip
    assert "would make /srv/foreign" in result["message"]
    assert "would fetch lab/open-tiny@" in result["message"]
    assert {host: _state(host) for host in HOSTS} == before


def test_the_first_run_changes_hosts_and_the_second_reports_no_changes(
    deploy: Path, user: User
) -> None:
    results = _pyinfra(user, deploy, "--yes", "inventory.py", "deploy.py")["results"]
    assert results["failed_hosts"] == []
    assert {name: len(item["success"]) for name, item in _by_name(results).items()} == {
        "GPU": 0, "Tools": 0, "Directories": 2, "Note": 2, "Model": 2
    }  # fmt: skip
    for host, gpu in (("spark-1", "NVIDIA GB10"), ("rtx-1", "NVIDIA GeForce RTX 5090")):
        assert ssh(host, "sudo stat -c '%a %U' /srv/foreign") == "750 root"
        assert ssh(host, "sudo cat /srv/foreign/gpu.txt") == f"{gpu}, driver 580.95.05"
        model = ssh(host, "sudo find /srv/foreign/models -name model.safetensors -type f")
        assert len(model.splitlines()) == 1
        # The lock was taken, and released.
        ssh(host, "sudo test -e /opt/sparkwright/state/lock-last.json")
        ssh(host, "sudo test ! -e /opt/sparkwright/state/lock.json")
    before = {host: _state(host) for host in HOSTS}
    results = _pyinfra(user, deploy, "--yes", "inventory.py", "deploy.py")["results"]
    assert results["totals"]["no_change"] == results["totals"]["hosts"] == 10
    assert {host: _state(host) for host in HOSTS} == before


def test_a_host_with_another_gpu_fails_alone(deploy: Path, user: User) -> None:
    text = (deploy / "inventory.py").read_text()
    (deploy / "inventory.py").write_text(text.replace('"12.0"', '"9.0"'))
    try:
        result = _pyinfra(user, deploy, "--yes", "inventory.py", "deploy.py", code=1)
    finally:
        (deploy / "inventory.py").write_text(text)
    assert result["results"]["failed_hosts"] == ["rtx-1"]
    operations = _by_name(result["results"])
    assert (operations["GPU"]["error"], operations["GPU"]["no_change"]) == (["rtx-1"], ["spark-1"])
    assert operations["Model"]["no_change"] == ["spark-1"]
    assert "gpu: NVIDIA GeForce RTX 5090" in result["message"]
    assert "9.0" in result["message"]


def test_a_host_that_does_not_answer_fails_alone(deploy: Path, user: User) -> None:
    """The login ends before any program: no fact can be read.

    A login that only prints is not a fault.
    """
    ends = 'case "$BASH_EXECUTION_STRING" in *sparkwright-observe*) exit 0;; esac'
    # The login prints only before sparkwright's programs, since pyinfra's facts and SFTP fail on
    # other text.
    prints = 'case "$BASH_EXECUTION_STRING" in *sparkwright*) echo welcome;; esac'
    for host, line in (("rtx-1", f"echo welcome; {ends}"), ("spark-1", prints)):
        ssh(host, f"cp .bashrc .bashrc-kept 2>/dev/null; sed -i '1i {line}' .bashrc")
    try:
        result = _pyinfra(user, deploy, "--yes", "inventory.py", "deploy.py", code=1)
    finally:
        for host in ("rtx-1", "spark-1"):
            ssh(host, "mv .bashrc-kept .bashrc")
    assert result["results"]["failed_hosts"] == ["rtx-1"]
    assert _by_name(result["results"])["Model"]["no_change"] == ["spark-1"]
    assert "no answer: the host's login ends before the program" in result["message"]


def test_every_fact_is_printed_as_json(deploy: Path, user: User) -> None:
    names = [f"sparkwright.facts.{name}" for name in VIEWS]
    done = user.run("pyinfra", "--json", "inventory.py", "fact", *names, folder=deploy)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    result = {name.rpartition(".")[2]: printed[name]["spark-1"] for name in printed}
    assert set(result) == set(VIEWS)
    assert result["NvidiaDriver"] == "580.95.05"
    (gpu,) = result["Gpus"]
    assert (gpu["name"], gpu["compute_cap"]) == ("NVIDIA GB10", "12.1")
    assert result["HostObservation"]["gpu"]["gpus"] == [gpu]
    assert "nvidia" in result["Docker"]["runtimes"]
    assert "NVIDIA Container Toolkit" in result["ContainerToolkit"]
    assert result["HostMemorySize"]["total"] == 127601388 * 1024
    assert result["Disks"]["/opt/models"]["free"] > 0
    assert result["LockHolder"] is None


def _state(host: str) -> str:
    """Files that a run could have touched, without the files that the watch writes."""
    listing = "sudo find /srv /opt/sparkwright /opt/models -maxdepth 4 -printf '%p %m %u %s %T@\\n'"
    return ssh(host, f"{listing} | grep -vE '/state |watch' | sort; cat /var/log/dpkg.log | wc -c")
