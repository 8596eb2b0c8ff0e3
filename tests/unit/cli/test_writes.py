"""`check` and `plan` write no file, and other commands write only the named path."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkwright.catalog import load_catalog
from sparkwright.findings.user_error import UserError
from tests import forked
from tests.fuzz.drawn_site import GROUP_DATA, ROOT, contents, run, site
from tests.tables import Tables
from tests.unit.builders import locked, plan

cases = Tables(__file__)

OWN = GROUP_DATA + 'tls = "own"\nkeys = {"alice": {}}\n'


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def test_only_requested_files_are_written(tmp_path: Path) -> None:
    files = {"group_data/all.py": OWN, "fleet.lock": locked(plan())}
    with site(tmp_path, files) as position:
        assert run(position, "check").exit_code == 0
        assert run(position, "plan").exit_code == 0
        assert run(position, "lock", "--check").exit_code == 0
        assert run(position, "render", "inventory/lab.py", "out", outputs=["out"]).exit_code == 0
        assert run(position, "monitoring", "--output", "out", outputs=["out"]).exit_code == 0
        assert {"spark-1", "spark-2"} < {path.name for path in (position / "out").iterdir()}


def test_an_inventory_that_imports_leaves_no_bytecode(tmp_path: Path) -> None:
    """The import runs in a separate process, since this process may write no bytecode."""
    files = {"machines.py": 'NAMES = ["spark-1"]\n', "inventory/lab.py":
             "import machines\nsparks = machines.NAMES\n"}  # fmt: skip
    with site(tmp_path, files) as position:
        before = contents(position)
        done = subprocess.run(
            [sys.executable, "-m", "sparkwright", "check"], cwd=position, capture_output=True,
            text=True, check=False,
            env={k: v for k, v in ENVIRONMENT.items() if k != "PYTHONDONTWRITEBYTECODE"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert contents(position) == before


@cases("arguments")
def test_a_full_disk_causes_one_message(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with site(tmp_path, {"fleet.lock": locked(plan())}) as position:
        command = ["sparkwright", *arguments]
        done = forked.run(command, position, ENVIRONMENT, stdout=Path("/dev/full"))
    assert done.returncode == 2, done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@cases("arguments")
def test_an_unwritable_path_is_named(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with site(tmp_path, {"fleet.lock": locked(plan())}) as position:
        result = run(position, *arguments)
    assert result.exit_code == 2, result.output
    assert any(word.partition("/x")[0] in result.output for word in arguments[1:])


def test_a_host_whose_name_is_a_path_is_not_rendered(tmp_path: Path) -> None:
    name = f"../../../{tmp_path.name}-outside"
    files = {"inventory/lab.py": f"sparks = [{name!r}]\n", "fleet.lock": locked(plan())}
    with site(tmp_path, files) as position:
        result = run(position, "render", "inventory/lab.py", "out", outputs=["out"])
        assert result.exit_code == 2
        assert "not a valid host name" in result.output
        assert not (position / "out").exists()
    assert not list(tmp_path.parent.glob("*-outside"))


def test_a_catalog_file_with_another_ending_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.yml").write_text("kind: model\n")
    with pytest.raises(UserError, match=r"mine\.yaml"):
        load_catalog([tmp_path])
