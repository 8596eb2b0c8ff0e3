"""The timer that has one machine look at the fleet and send notices: its units as text."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sparkwright.config.templates import template
from sparkwright.documents.text_files import write
from sparkwright.findings.user_error import Messages

NAME = "sparkwright-notify"
_MESSAGES = Messages(__file__)
UNITS = (f"{NAME}.service", f"{NAME}.timer")


def folder() -> Path:
    """Where units of this user lie: root's are the system's."""
    if os.geteuid() == 0:
        return Path("/etc/systemd/system")
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home, "systemd/user")


def units(site: Path, inventory: Path, options: Sequence[str] = ()) -> dict[str, str]:
    """The units by name. Nothing secret is in them: addresses are read anew every time.

    Args:
        options: further words of the command, such as ``--user ann``.

    Raises:
        UserError: for a path that a unit can't name.
    """
    arguments = [sys.executable, "-m", "sparkwright", "notify", str(inventory), *options]
    for word in (str(site), *arguments):
        if not word.isprintable() or any(mark in word for mark in "%$\\\"'"):
            raise _MESSAGES.refusal("no-word-of-a-unit", "notify --install", word=word)
    context = {
        "site": site,
        "command": shlex.join(arguments),
        "path": os.environ.get("PATH", os.defpath),
        "user": os.geteuid() != 0,
    }
    return {name: template(f"notify/{name}.j2").render(context) for name in UNITS}


def install(site: Path, inventory: Path, options: Sequence[str] = ()) -> Path:
    """Write the units and start the timer. Returns where they are.

    Raises:
        UserError: when that fails.
    """
    target = folder()
    try:
        for name, text in units(site, inventory, options).items():
            write(target / name, text)
    except OSError as error:
        raise _MESSAGES.refusal("unit", str(target), error=error) from None
    _systemctl("daemon-reload")
    _systemctl("enable", "--now", UNITS[1])
    return target


def remove() -> bool:
    """Stop the timer and take its units away. Returns whether there were any."""
    paths = [path for name in UNITS if (path := folder() / name).exists()]
    if paths:
        _systemctl("disable", "--now", UNITS[1])
        for path in paths:
            path.unlink()
        _systemctl("daemon-reload")
    return bool(paths)


def _systemctl(*arguments: str) -> None:
    command = ["systemctl", *([] if os.geteuid() == 0 else ["--user"]), *arguments]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        output = str(getattr(error, "stderr", None) or error).strip()
        facts = {"words": " ".join(arguments), "output": output}
        raise _MESSAGES.refusal("systemctl", "notify --install", **facts) from None
