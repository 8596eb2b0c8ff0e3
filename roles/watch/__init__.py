"""Watch: a timer on the host that checks services, GPU and disks, and records faults.

The role runs last, so the watch compares the host with a tested state. ``sparkwright status`` shows
the watch's findings.
"""

from functools import partial

from pyinfra.api.host import Host

from sparkwright.operations import watch as operations
from sparkwright.run import rollout
from sparkwright.run.state import HostRun, role, run_of


@role
def watch(host: Host, host_run: HostRun) -> None:
    """Install or remove the watch, as planned."""
    operations.installed(
        name="Watch: timer",
        watch=host_run.watch,
        unless=partial(rollout.elsewhere, run_of(host), host_run),
    )
