"""Bootstrap: prepares a bare host by the steps that its settings name.

The role runs before preflight. Preflight checks the result, so it refuses no host for faults that
these steps fix. ``sparkwright bootstrap`` runs this role alone.
"""

from pyinfra.api.host import Host

from sparkwright.facts.asking import is_root
from sparkwright.plan.uplink import environment
from sparkwright.run.state import HostRun, role


@role
def bootstrap(host: Host, host_run: HostRun) -> None:
    """Prepare this host, if its settings name steps."""
    if not host_run.settings.bootstrap:
        return
    # pyinfra's own operations take half a second to import: only hosts with steps need them.
    from sparkwright.operations.bootstrap import steps
    from sparkwright.run import bootstrap as run

    result = run.decided(host, host_run)
    if result is None:
        return
    state, decision = result
    settings = host_run.settings
    for step in host.loop(decision.steps):
        steps.done(
            name=f"Bootstrap: {step.name}",
            step=step,
            user=state.observed.user,
            texts=state.observed.texts,
            _env=environment(settings),
            _sudo=not is_root(host),
            # sudo needs no password by now; pyinfra would put a password into a command line.
            _sudo_password="",
        )
    if decision.reboot:
        run.rebooted(
            name="Bootstrap: reboot",
            state=state,
            asked=settings.bootstrap_reboot,
        )
