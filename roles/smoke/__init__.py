"""Smoke: tests health, every alias, the key and a real generation over SSH, with time limits. The
role also tests routes without the key from outside.
"""

from dataclasses import replace

from pyinfra.api.host import Host

from sparkwright.checks.smoke.outside import entrances
from sparkwright.operations import smoke as operations
from sparkwright.run import rollout
from sparkwright.run.state import HostRun, role


@role
def smoke(_: Host, host_run: HostRun) -> None:
    """Request real answers from each service; a failure shows the service's last journal lines."""
    asleep = rollout.asleep(host_run)
    operations.answers(
        name="Smoke: health, models, key, generation",
        services=[
            replace(service.gate, warm_ups=0)
            for service in host_run.services
            if service.name not in asleep
        ],
        entrances=entrances(host_run.desired.plan),
        judged=host_run.smoke.__setitem__,
        noticed=host_run.findings.append,
    )
