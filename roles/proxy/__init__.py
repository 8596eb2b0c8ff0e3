"""Proxy: HAProxy before the services of a host, and the address for all models.

The role changes the proxies if no service runs yet, or if the deploy switches no service. Otherwise
the switch (``roles.serving``) changes the proxies between stop and start, and a rollback restores
them. HAProxy is installed before any running service is touched.
"""

from pyinfra.api.host import Host

from sparkwright.operations import address, proxies
from sparkwright.plan.changes import serves_already
from sparkwright.plan.uplink import environment
from sparkwright.run.state import HostRun, role


@role
def proxy(_: Host, host_run: HostRun) -> None:
    """Apply the planned proxies of the host."""
    settings = host_run.settings
    proxies.installed(
        name="Proxy: HAProxy installed",
        wanted=host_run.proxies is not None,
        environment=environment(settings),
    )
    address.present(
        name="Proxy: address for all models",
        files=host_run.address_files,
    )
    proxies.serving(
        name="Proxy: HAProxy, health",
        proxies=host_run.proxies,
        files=host_run.proxy_files,
        later=serves_already(host_run.services, host_run.secrets, host_run.observed),
    )
