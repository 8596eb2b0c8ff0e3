"""The plan of a host in a deploy without a site: from its data and settings alone."""

from typing import Any

from pyinfra.api.exceptions import PyinfraError
from pyinfra.context import ctx_host

from sparkwright.config.inventory import HostInput
from sparkwright.config.settings import HostSettings
from sparkwright.facts import hooks
from sparkwright.findings.user_error import UserError
from sparkwright.site.desired import DesiredHost, desired_fleet


def planned(**settings: Any) -> DesiredHost:
    """Plan the host: its services with images, models, files and keys.

    This machine looks tags and revisions up, unless ``lock_file`` names their lock. The API key is
    made at the first run, but not under ``--dry``, as in a site.

    Args:
        settings: settings in the form of a site's group_data. The host's own data is read, too,
            except keys that are not settings.

    Raises:
        PyinfraError: names every mistake in the settings.
    """
    host = ctx_host.get()
    ours = {
        key: value
        for key, value in host.data.dict().items()
        if key in HostSettings.model_fields or key.startswith("ssh_")
    }
    data = {**ours, **settings}
    box = HostInput(host.name, data, lambda _: "the deploy")
    try:
        dry = bool(hooks.command_line().get("dry"))
        fleet = desired_fleet([box], {host.name: data}, dry=dry)
    except UserError as error:
        raise PyinfraError(str(error)) from None
    return fleet.hosts[host.name]
