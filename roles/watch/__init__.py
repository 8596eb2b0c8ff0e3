"""Watch: a timer on the host that looks at services, GPU and disks, and records what goes wrong.

Installed last, so that it expects what was proved. ``sparkwright status`` shows its findings.
"""

from __future__ import annotations

from functools import partial

from pyinfra.context import ctx_host

from sparkwright.operations import watch as operations
from sparkwright.run import rollout
from sparkwright.run.state import host_run, run_of


def watch() -> None:
    """Have the watch that the plan wants, or none."""
    host = ctx_host.get()
    one = host_run(host)
    if one is not None:
        operations.installed(
            name="Watch: timer",
            watch=one.watch,
            unless=partial(rollout.elsewhere, run_of(host), one),
        )
