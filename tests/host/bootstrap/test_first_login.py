"""``sparkwright up`` at a terminal, by the system's own ssh and then pyinfra, to a box that is this
machine behind the test's own SSH server, without a change of this machine.
"""

from pathlib import Path

from sparkwright.config.skeleton import contents, write
from tests.host.programs import program
from tests.unit.bootstrap.ssh_server import PASSWORD, box, connection
from tests.unit.builders import catalog, locked, plan
from tests.unit.site_terminal import terminal

#: sudo that reads the password from standard input each time, and then runs as the same user.
_SUDO = f"""#!/bin/sh
case "$*" in
  "-k -S -p  true") shift 4 ;;
  "-S -k -H -p  -- "*) shift 6 ;;
  *) exit 1 ;;
esac
read -r word; [ "$word" = "{PASSWORD}" ] && exec "$@"
"""
_GPU = "#!/bin/sh\necho 'NVIDIA GB10, 12.1, 580.95.05, [N/A]'\n"


def test_up_logs_in_by_password_and_reports_every_fault(tmp_path: Path) -> None:
    """The user enters one password once for SSH and sudo; pyinfra runs in the same process."""
    site = tmp_path / "site"
    write(site, contents((), catalog()))
    inventory = site / "inventory/lab.py"
    inventory.write_text('"""Mine."""\n')
    (site / "fleet.lock").write_text(locked(plan()))
    with box(tmp_path) as server:
        for name, text in {"sudo": _SUDO, "nvidia-smi": _GPU}.items():
            program(server.home / "bin", name, text)
        config = connection(tmp_path, server.port)["ssh_config_file"]
        with (site / "group_data/all.py").open("a") as settings:
            settings.write(f"ssh_config_file = {config!r}\ndisk_headroom_gib = 1000000\n")
        port = ("--ssh-port", str(server.port))
        with terminal(site, "up", "me@127.0.0.1", *port) as shown:
            shown.until("own key?")
            shown.type("yes\n")
            shown.until("Password of")
            shown.type(f"{PASSWORD}\n")
            assert shown.ended(120) == 1, shown.got
    assert "Traceback" not in shown.got
    assert "a full disk breaks Docker" in shown.got
    assert (shown.got.count("Password of"), shown.got.count(PASSWORD)) == (1, 0)
    assert inventory.read_text() == '"""Mine."""\n'
