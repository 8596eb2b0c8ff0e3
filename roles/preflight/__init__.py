"""Preflight: checks the state of each host before any host is changed.

The role also runs alone: ``pyinfra inventory/lab.py roles.preflight.preflight``.
"""

from functools import partial

from pyinfra.api.host import Host

from sparkwright.run import preflight as operations
from sparkwright.run.state import HostRun, role, run_of


@role
def preflight(host: Host, host_run: HostRun) -> None:
    """Observe and judge this host; refuse the host if any finding is an error."""
    if operations.judged(host, host_run, dry=run_of(host).dry):
        again = partial(operations.judged_again, host_run=host_run) if host_run.cured else None
        operations.passed(name="Preflight", warnings=len(host_run.findings), again=again)
