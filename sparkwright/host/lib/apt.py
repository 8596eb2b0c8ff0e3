"""apt on this host: installed packages, and changes of packages while no other program changes
packages.
"""

import fcntl
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from sparkwright.host.lib.processes import Outcome, run
from sparkwright.host.lib.waiting import remaining

#: Seconds that another program may hold apt's locks: unattended-upgrades takes minutes.
PATIENCE = 600
_PAUSE = 1.0
#: Locks of a program that installs: unattended-upgrades at boot, or an interrupted run.
_LOCKS = ("/var/lib/apt/lists/lock", "/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock")
#: apt's message about a lock names the lock file in every language.
_LOCKED = re.compile(r"/var/(?:lib/dpkg|lib/apt/lists|cache/apt/archives)/lock")
_JOURNAL = Path("/var/lib/dpkg/updates")
_QUIET = {"DEBIAN_FRONTEND": "noninteractive"}


def installed(*names: str) -> tuple[str, ...]:
    """Return the completely installed packages among the given names; without names, all installed
    packages.
    """
    form = "${Package} ${db:Status-Status}\n"
    lines = run("dpkg-query", "-W", "-f", form, *names, timeout=60).out.splitlines()
    return tuple(dict.fromkeys(line.split()[0] for line in lines if line.endswith(" installed")))


def get(*arguments: str, environment: Mapping[str, str]) -> Outcome:
    """Run ``apt-get`` once no other program uses it.

    apt itself waits only for dpkg's lock, not for the locks of its lists and downloads.
    """
    until = time.monotonic() + PATIENCE
    command = ("apt-get", "-o", f"DPkg::Lock::Timeout={PATIENCE}", *arguments)
    while True:
        free()
        done = run(*command, environment={**os.environ, **_QUIET, **environment})
        if done.ok or not _LOCKED.search(done.err) or time.monotonic() > until:
            return done
        time.sleep(_PAUSE)


def free() -> None:
    """Wait until no other program installs packages, and complete an interrupted installation."""
    if busy := remaining(lambda: [lock for lock in _LOCKS if _held(lock)], PATIENCE, _PAUSE):
        raise SystemExit(
            f"another program has held apt's lock for {PATIENCE // 60} minutes ({busy[0]}): find "
            f"the program (sudo fuser {busy[0]}; systemctl status unattended-upgrades), then run "
            "the command again"
        )
    if _JOURNAL.is_dir() and any(file.name.isdigit() for file in _JOURNAL.iterdir()):
        done = run(
            "dpkg", "--force-confdef", "--force-confold", "--configure", "-a",
            environment={**os.environ, **_QUIET},
        )  # fmt: skip
        if not done.ok:
            raise SystemExit(f"an interrupted dpkg run can't be completed: {done.message}")


def _held(path: str) -> bool:
    """Return whether a process holds an apt or dpkg lock file."""
    try:
        with Path(path).open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
