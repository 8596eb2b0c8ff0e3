"""A site's run by pyinfra's own program: planned before connecting, or stopped before any host is
touched."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from sparkwright.run.state import run_of
from tests.operations.emergencies import host, pyinfra, write_site
from tests.tables import Tables

cases = Tables(__file__)

#: This test does not cover the plan: no host needs to answer.
DEPLOY = "print('deployed')"
#: Source of each setting, as rules name it.
ORIGINS = """
from sparkwright.run import site as runs
from sparkwright.site.desired import desired_fleet
def noted(inputs, everyone, *rest, **more):
    for one in inputs:
        keys = ("image_tag", "peer_port", "lan_address")
        print("planned", one.name, len(everyone), *map(one.origin, keys))
    raise SystemExit(7)
runs.desired_fleet = noted
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_site(
        tmp_path, host("spark-1", {"lan_address": "10.0.0.1"}), host("spark-2"), deploy=DEPLOY,
        group_data__boxes="peer_port = 18700\n",
    )  # fmt: skip


@cases("arguments", "message")
def test_mistakes_of_the_command_line_are_reported(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    confirmed = ["--yes"] if arguments else []
    done = pyinfra(folder, *confirmed, *arguments, "inventory/lab.py", "deploy.py")
    assert done.returncode == 2
    assert message in done.stderr
    assert "deployed" not in done.stdout
    assert "Connected" not in done.stderr


def test_an_error_in_a_users_file_names_its_line(folder: Path) -> None:
    (folder / "inventory/lab.py").write_text("sparks = [\n")
    done = pyinfra(folder, "--yes", "inventory/lab.py", "deploy.py")
    assert (done.returncode, "inventory/lab.py: line 1" in done.stderr) == (2, True)


def test_a_limit_plans_its_hosts_and_keeps_all_hosts_in_the_inventory(folder: Path) -> None:
    with (folder / "config.py").open("a") as config:
        config.write(ORIGINS)
    arguments = ("--dry", "--limit", "@fake/spark-1", "--data", "image_tag=x")
    done = pyinfra(folder, *arguments, "inventory/lab.py", "deploy.py")
    assert done.returncode == 7
    assert done.stdout.splitlines()[-1] == (
        "planned @fake/spark-1 2 --data group_data/boxes.py inventory/lab.py"
    )


def test_a_command_without_a_role_needs_no_plan(folder: Path) -> None:
    with (folder / "config.py").open("a") as config:
        config.write(ORIGINS)
    done = pyinfra(folder, "inventory/lab.py", "fact", "sparkwright.facts.NvidiaDriver")
    assert done.returncode == 0, done.stderr
    assert "580.95.05" in done.stdout + done.stderr


def test_an_operation_outside_of_a_site_names_missing_arguments() -> None:
    lone = SimpleNamespace(connector_data={})
    with pytest.raises(RuntimeError, match=r"config\.py was not read"):
        run_of(lone)  # type: ignore[arg-type]
