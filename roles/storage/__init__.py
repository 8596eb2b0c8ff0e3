"""Storage: /opt/models and the service directories, with owner and mode."""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra.api.host import Host

from roles import remote, site, steps
from sparkwright.host import directories as program
from sparkwright.plan.plan import HostPlan


def storage() -> None:
    """Make the directories that are not there, and put owner and mode of ours right."""
    steps.step("Storage: directories", _pending, _act)


def directories(plan: HostPlan) -> dict[str, str | None]:
    """Wanted ``mode uid`` by path, parents first; None takes an existing directory as it is.

    The models' root may be a file system of its own or belong to the user: it is made when it
    is not there, and otherwise left alone.
    """
    root = plan.settings.services_root
    wanted: dict[str, str | None] = {plan.settings.models_root: None, root: "755 0"}
    for name in ("services", "runtime"):
        wanted[f"{root}/{name}"] = "755 0"
    for name in ("state", "images"):
        wanted[f"{root}/{name}"] = "700 0"
    for service in plan.services:
        home = f"{root}/services/{service.name}"
        wanted[home] = "750 0"
        wanted[f"{home}/releases"] = "750 0"
    return wanted


def _pending(run: site.HostRun) -> Sequence[str]:
    return [
        f"{'make' if seen is None else 'set mode and owner of'} {path}"
        for path, wanted in directories(run.plan).items()
        if (seen := run.seen.directories.get(path)) is None
        or (wanted is not None and seen != wanted)
    ]


def _act(host: Host, run: site.HostRun) -> Sequence[str]:
    wanted = {path: mode or "755 0" for path, mode in directories(run.plan).items()}
    changing = {
        path: mode
        for path, mode in wanted.items()
        if run.seen.directories.get(path) is None or directories(run.plan)[path] is not None
    }
    remote.ask(host, "sparkwright-storage", program, {"directories": changing})
    return _pending(run)
