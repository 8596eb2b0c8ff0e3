"""Preflight: what each host is, judged before anything is changed on any.

Runs alone too: ``pyinfra inventory/lab.py roles.preflight.preflight``.
"""

from __future__ import annotations

from functools import partial

from pyinfra.context import ctx_host

from sparkwright.run import preflight as operations
from sparkwright.run.state import host_run, run_of


def preflight() -> None:
    """Observe and judge this host; refuse it when any finding is an error."""
    host = ctx_host.get()
    one = host_run(host)
    if one is not None and operations.judged(host, one, dry=run_of(host).dry):
        again = partial(operations.judged_again, one=one) if one.cured else None
        operations.passed(name="Preflight", warnings=len(one.findings), again=again)
