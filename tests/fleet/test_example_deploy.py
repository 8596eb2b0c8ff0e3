"""The deploy of docs/examples, without a site: a bare box answers, and a second deploy changes
nothing.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.site import ROOT, Site, bare, ssh
from tests.install.conftest import User

HOST, ADDRESS = "spark-2", "10.213.77.12"
_INVENTORY = """
import runpy
_virtual = runpy.run_path({virtual!r})
_data = {{key: value for key, value in _virtual["_CONNECTION"].items() if key != "lock_file"}}
_data["catalog_directories"] = ({catalog!r},)
boxes = [({host!r}, {{**_data, "ssh_hostname": {address!r}}})]
"""


@pytest.fixture
def folder(site: Site, tmp_path: Path) -> Iterator[Path]:
    """A folder with only the deploy and an inventory."""
    site.power_on()
    site.repair()
    bare(HOST)
    shutil.copy(ROOT / "docs/examples/deploy.py", tmp_path)
    (tmp_path / "inventory.py").write_text(
        _INVENTORY.format(
            virtual=str(ROOT / "inventory/virtual.py"),
            catalog=str(ROOT / "lab/catalog"),
            host=HOST,
            address=ADDRESS,
        )
    )
    cache = ROOT / ".sparkwright/cache"
    if cache.is_dir():  # the bundles for hosts are made only once
        shutil.copytree(cache, tmp_path / ".sparkwright/cache")
    yield tmp_path
    ssh(HOST, "sudo systemctl disable --now sparkwright-chat 2>/dev/null || true")
    bare(HOST)


def test_a_deploy_file_of_twenty_lines_sets_up_a_box_with_docker(folder: Path, user: User) -> None:
    dry = user.run("pyinfra", "--dry", "inventory.py", "deploy.py", folder=folder)
    assert dry.returncode == 0, dry.stdout + dry.stderr
    assert not (folder / ".sparkwright/api_key").exists()
    ssh(HOST, "test ! -e /opt/sparkwright")

    done = user.run("pyinfra", "--yes", "inventory.py", "deploy.py", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    key = (folder / ".sparkwright/api_key").read_text().strip()
    models = f"curl -sS -m 20 -H 'Authorization: Bearer {key}' http://127.0.0.1:8000/v1/models"
    assert json.loads(ssh(HOST, models))["data"]

    again = user.run("pyinfra", "--yes", "--json", "inventory.py", "deploy.py", folder=folder)
    totals = json.loads(again.stdout)["results"]["totals"]
    assert totals["no_change"] == totals["hosts"], totals
