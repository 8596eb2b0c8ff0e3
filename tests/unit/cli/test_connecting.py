"""Every command that connects to hosts takes pyinfra's options of the connection, and uses them."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api.config import Config
from pyinfra.api.inventory import Inventory

from docs.generate.commands import commands
from sparkwright.cli.lib.extras import all_commands
from sparkwright.cli.lib.hosts import OPTIONS, SECRETS, given
from sparkwright.run import session
from tests.unit.builders import ROOT
from tests.unit.cli.answering import Asked, answering, run

#: Options in the user's form, and in the form that a session gets.
GIVEN = ["--user", "me", "--port", "2222", "--key", "id", "--same-sudo-password", "--parallel", "2"]
GOT = {
    "ssh_user": "me", "ssh_port": 2222, "ssh_key": "id", "same_sudo_password": True, "parallel": 2,
}  # fmt: skip
#: Commands that query or change hosts, by name.
ASKING = {
    name: command for name, command, _ in commands() if all_commands()[name.split()[0]].asks_hosts
}


def test_gevent_patches_the_library_for_every_command_that_queries_hosts() -> None:
    assert {"status", "bench", "key rotate", "models prune", "verify"} <= set(ASKING)
    for arguments, command in all_commands().items():
        reaches = hasattr(import_module(command.module.partition(":")[0]), "Hosts")
        assert all_commands()[arguments.split()[0]].asks_hosts or not reaches


def test_a_command_that_loads_ssl_is_patched_first() -> None:
    """The module of bench imports requests, and with it ssl."""
    script = (
        "from sparkwright.cli import main\n"
        "try:\n    main(['bench', 'missing.py'])\nexcept SystemExit:\n    pass\n"
        "from gevent.monkey import is_module_patched\nprint(is_module_patched('ssl'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "True"


@pytest.mark.parametrize("arguments", ASKING)
def test_every_command_that_connects_takes_the_connection_options(arguments: str) -> None:
    named = {name for param in ASKING[arguments].params for name in param.opts}
    assert {name for names, _, _ in OPTIONS for name in names} <= named
    assert set(SECRETS) <= named


def test_pyinfra_accepts_every_connection_option() -> None:
    pyinfra = Path(sys.executable).with_name("pyinfra")
    shown = subprocess.run([pyinfra, "--help"], capture_output=True, text=True, check=True).stdout
    ours = ({"-v", "--verbose"}, {"-q", "--quiet"})
    for names in (*(names for names, _, _ in OPTIONS if {*names} not in ours), tuple(SECRETS)):
        for name in names:
            assert name in shown


def test_a_session_gets_the_connection_options(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def answer(_: Asked) -> dict[str, Any]:
        seen.append(given())
        return {}

    answering(monkeypatch, answer)
    run("doctor", "inventory/lab.py", *GIVEN)
    run("doctor", "inventory/lab.py")
    assert seen == [GOT, {}]


def test_connection_options_configure_pyinfra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "getpass", lambda prompt: f"of {prompt}")
    config = Config()
    data = session._configure(config, dict(GOT, ssh_password_prompt=True, sudo_user="x"))
    assert data == {
        "ssh_user": "me", "ssh_port": 2222, "ssh_key": "id", "ssh_password": "of SSH password: "
    }  # fmt: skip
    assert (config.SUDO_PASSWORD, config.PARALLEL) == ("of sudo password: ", 2)
    # As in pyinfra, `sudo_user` applies only to an explicit `sudo`.
    assert (config.SUDO, config.SUDO_USER) == (False, None)
    session._configure(config, {"sudo": True, "sudo_user": "x"})
    assert (config.SUDO, config.SUDO_USER) == (True, "x")


def test_every_inventory_has_the_group_all() -> None:
    inventory = Inventory((["spark-1", "spark-2"], {}), sparks=(["spark-2"], {}))
    assert session._chosen(inventory, ("all", "spark-1")) is None
    for limit, names in ((("sparks",), ["spark-2"]), (("spark-*",), ["spark-1", "spark-2"])):
        chosen = session._chosen(inventory, limit) or []
        assert [host.name for host in chosen] == names
