"""With a broken plan, commands of an emergency go by what the hosts say; a deploy does not."""

from pathlib import Path

import pytest

from sparkwright.config.connection_data import connection_data
from sparkwright.host.lib.records import decode, encode
from sparkwright.host.status import HostStatus
from sparkwright.site.planless import unplanned_fleet
from tests.operations.emergencies import host, pyinfra, sparkwright, write_site
from tests.unit.results.test_status import answer


def running() -> HostStatus:
    """A host with one service that is well."""
    seen = encode(answer())
    return decode(HostStatus, {key: seen[key] for key in encode(HostStatus(0, None, None, (), {}))})


@pytest.mark.parametrize("command", ["status", "diff"])
def test_a_command_that_looks_makes_no_key(tmp_path: Path, command: str) -> None:
    """On another machine than the fleet's, its next deploy would take that key for the fleet's."""
    keys = 'keys = {"alice": {}}\n'
    write_site(tmp_path, host("spark-1", status=running()), group_data__all=keys)
    sparkwright(tmp_path, command)
    assert {path.name for path in tmp_path.glob(".sparkwright/*")} <= {"status.json"}
    pyinfra(tmp_path, "--yes", "inventory/lab.py", "roles.serving.serving")
    assert (tmp_path / ".sparkwright/keys/alice").exists()


def test_an_inventory_that_cannot_be_read_still_ends_the_run(tmp_path: Path) -> None:
    write_site(tmp_path, host("spark-1", status=running()))
    (tmp_path / "inventory/lab.py").write_text("boxes = [\n")
    done = sparkwright(tmp_path, "status")
    assert (done.returncode, done.stdout) == (2, "")
    assert "inventory/lab.py: line 1" in done.stderr


@pytest.mark.parametrize("deploy", ["deploy.py", "fleet.py"])
def test_a_deploy_gets_no_run_without_a_plan(tmp_path: Path, deploy: str) -> None:
    write_site(tmp_path, host("spark-1", status=running()), group_data__all="x = (\n")
    (tmp_path / deploy).write_text("")
    done = pyinfra(tmp_path, "--yes", "inventory/lab.py", deploy)
    assert done.returncode != 0
    assert "Connect" not in done.stderr


def test_connections_are_read_from_a_file_that_is_no_python(tmp_path: Path) -> None:
    file = tmp_path / "all.py"
    file.write_text(
        "\ufeffssh_user = 'spark'\nssh_port=2222  # behind a router\nservices = {\n"
        "ssh_key = open('/tmp/ran', 'w')\n    ssh_password = 'inner'\nimage_tag = 'x'\n"
        "_sudo = True\nmodels_root = '/data/models'\nssh_hostname = " + "[" * 100_000 + "\n"
    )
    assert connection_data(file) == {
        "ssh_user": "spark", "ssh_port": 2222, "_sudo": True, "models_root": "/data/models",
    }  # fmt: skip
    assert connection_data(tmp_path / "nothing.py") == {}


def test_places_that_can_be_none_are_everybodys(tmp_path: Path) -> None:
    data = {
        "models_root": "/data/models", "services_root": ["/"], "break_lock": "perhaps",
        "rollout": {"soak_seconds": 2},
    }  # fmt: skip
    settings = unplanned_fleet({"spark-1": data}).hosts["spark-1"].desired.plan.settings
    assert (settings.models_root, settings.services_root) == ("/data/models", "/opt/sparkwright")
    assert (settings.break_lock, settings.rollout.soak_seconds) == (False, 2)
