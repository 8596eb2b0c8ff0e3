"""sparkwright's reading of an inventory, compared with pyinfra's reading."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkwright.config.inventory import read_inventory
from sparkwright.findings.user_error import UserError
from tests.tables import Tables

cases = Tables(__file__)

ROOT = Path(__file__).resolve().parents[3]
#: Prints pyinfra's reading of an inventory: host -> data.
_PYINFRA = """
import json, sys
from pathlib import Path
from pyinfra.api.config import Config
from pyinfra.api.state import State
from pyinfra.context import ctx_config, ctx_state
from pyinfra_cli.inventory import make_inventory
ctx_state.set(State())
ctx_config.set(Config())
inventory = make_inventory(sys.argv[1], cwd=str(Path.cwd()))
inventory = inventory[0] if isinstance(inventory, tuple) else inventory
print(json.dumps({host.name: dict(host.data.dict()) for host in inventory}, default=list))
"""
MINE = """
shared = (["one", ("two", {"ssh_port": 22})], {"my_group": "shared"})
many = ["one", ("three", {"my_own": [1, 2], "my_group": "own"})]
_hidden = ["nobody"]
number = 3
"""


def _both(folder: Path, inventory: str) -> tuple[object, object]:
    done = subprocess.run(
        [sys.executable, "-c", _PYINFRA, inventory],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before = Path.cwd()
    os.chdir(folder)
    try:
        hosts = read_inventory(Path(inventory))
    finally:
        os.chdir(before)
    ours = {host.name: json.loads(json.dumps(dict(host.data), default=list)) for host in hosts}
    return json.loads(done.stdout), ours


@pytest.mark.parametrize("inventory", ["inventory/lab.py", "inventory/virtual.py"])
def test_the_projects_inventories_are_read_as_in_pyinfra(inventory: str) -> None:
    theirs, ours = _both(ROOT, inventory)
    assert ours == theirs


def test_groups_shared_data_and_precedence_are_the_same_as_in_pyinfra(tmp_path: Path) -> None:
    (tmp_path / "group_data").mkdir()
    (tmp_path / "group_data/all.py").write_text("my_all = 1\nmy_group = 'all'\n_private = 2\n")
    (tmp_path / "group_data/many.py").write_text("my_group = 'many'\nmy_many = 3\n")
    (tmp_path / "group_data/hosts.py").write_text("import json\nmy_file = 4\nmy_all = 5\n")
    (tmp_path / "group_data/shared.py").write_text("my_group = 'file'\nmy_shared = 6\n")
    (tmp_path / "hosts.py").write_text(MINE)
    theirs, ours = _both(tmp_path, "hosts.py")
    assert ours == theirs


def test_the_origin_of_a_key_is_the_last_file_that_sets_it(here: Path) -> None:
    Path("group_data").mkdir()
    Path("group_data/all.py").write_text("a = 1\nb = 1\n")
    Path("group_data/many.py").write_text("b = 2\n")
    Path("hosts.py").write_text("many = [('one', {'c': 3})]\n")
    (host,) = read_inventory(Path("hosts.py"), ["d=4", "e=text"])
    origins = ["group_data/all.py", "group_data/many.py", "hosts.py", "--data"]
    assert [host.origin(key) for key in "abcd"] == origins
    assert (host.data["d"], host.data["e"]) == (4, "text")


@cases("text", "reason")
def test_a_file_that_is_not_an_inventory_is_reported_with_its_location(
    tmp_path: Path, text: str, reason: str
) -> None:
    file = tmp_path / "hosts.py"
    file.write_text(text)
    with pytest.raises(UserError) as raised:
        read_inventory(file)
    (problem,) = raised.value.findings
    assert problem.subject.place.startswith(str(file))
    assert reason in problem.observed
