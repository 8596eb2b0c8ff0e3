"""Bootstrap: a bare host is made ready, by the steps that its settings name and no other.

Before preflight, which judges what will be there: what these steps cure refuses no host, and is
judged again once they are done. Runs alone too, for ``sparkwright bootstrap``.
"""

from pyinfra.api.host import Host

from sparkwright.facts.asking import is_root
from sparkwright.plan.uplink import environment
from sparkwright.run.state import HostRun, role


@role
def bootstrap(host: Host, host_run: HostRun) -> None:
    """Have this host ready, where its settings ask for it."""
    if not host_run.settings.bootstrap:
        return
    # Half a second to import, of pyinfra's own operations: only for who asks for it.
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
            # sudo asks for none by now; pyinfra would put a password into a command line.
            _sudo_password="",
        )
    if decision.reboot:
        run.rebooted(
            name="Bootstrap: reboot",
            state=state,
            asked=settings.bootstrap_reboot,
        )
