"""Undo bootstrap on this host, as far as possible. The program runs on the host as root.

The last step is undone first. Parts that other software has changed or now needs stay, and the
answer names them; the driver always stays.
"""

import re
from pathlib import Path

from sparkwright.host.bootstrap.prepare import RECORD, Step
from sparkwright.host.lib import apt, docker, documents, files, records, systemd
from sparkwright.host.lib.processes import run


@records.dataclass(frozen=True)
class UndoAnswer:
    """Result of an undo: undone steps and remaining parts, as text."""

    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


#: Removing one of these packages also removes containers and images.
_ENGINES = {"docker.io", "docker-ce"}
_GOES = re.compile(r"^(?:Purg|Remv) (\S+)", re.MULTILINE)


def undo(name: str, step: Step) -> tuple[list[str], list[str]]:
    """Undo a step. Return the changes, and the remaining parts."""
    done: list[str] = []
    left = [f"{name}: {step.undo.apart}"] if step.undo.apart else []
    for command in step.undo.commands:
        if run(*command, timeout=120).ok:
            done.append(" ".join(command))
        else:
            left.append(f"{name}: failed: {' '.join(command)}")
    if step.undo.units:
        systemd.disable(*step.undo.units)
    for path, sha256 in step.undo.files.items():
        now = documents.digest(path)
        if now == sha256:
            Path(path).unlink()
            done.append(path)
        elif now is not None:
            left.append(f"{path}: changed since bootstrap wrote it")
    if any(path.startswith(f"{systemd.UNITS}/") for path in step.undo.files):
        systemd.reload()
    if step.undo.packages and not step.undo.apart:
        gone, why = packages(step)
        done += [f"package {package}" for package in gone]
        left += [f"{name}: {why}"] if why else []
    return done, left


def packages(step: Step) -> tuple[list[str], str | None]:
    """Remove a step's packages and the dependencies installed with them; return the changes, or the
    reason why the packages stay.
    """
    before = set(apt.installed())
    installed_now = [package for package in step.undo.packages if package in before]
    if not installed_now:
        return [], None
    if _ENGINES & set(installed_now) and (docker.containers() or docker.get("/images/json")):
        return [], "Docker stays: it has containers or images that sparkwright did not make"
    if need := [
        package for package in _simulated("purge", *installed_now) if package not in installed_now
    ]:
        return [], f"{', '.join(installed_now)} stay: {', '.join(need)} need them"
    all_gone = _simulated("purge", "--auto-remove", *installed_now)
    alone = ["--auto-remove"] if not set(all_gone) & set(step.before) else []
    ended = apt.get("purge", "-qq", "--yes", *alone, *installed_now, environment={})
    if not ended.ok:
        return [], f"apt-get purge {' '.join(installed_now)}: {ended.message}"
    return sorted(before - set(apt.installed())), None


def _simulated(*arguments: str) -> list[str]:
    """Return the packages that apt-get would remove."""
    return _GOES.findall(run("apt-get", "-s", *arguments, timeout=120).out)


def main(request: None) -> UndoAnswer:
    """Undo every recorded step, and remove each undone step from the record."""
    if (steps := documents.record(dict[str, Step], RECORD)) is None:
        return UndoAnswer((), ("bootstrap has recorded no change on this host",))
    done: list[str] = []
    left: list[str] = []
    if any(step.undo.packages for step in steps.values()):
        apt.free()
    last_first = list(reversed(steps))
    # Remove the sudoers file last: all other steps need it.
    last_first.sort(key="sudoers".__eq__)
    for name in last_first:
        gone, stays = undo(name, steps.pop(name))
        done += gone
        left += stays
        if steps:
            files.write_record(Path(RECORD), steps, 0o600)
    Path(RECORD).unlink()
    return UndoAnswer(tuple(done), tuple(left))
