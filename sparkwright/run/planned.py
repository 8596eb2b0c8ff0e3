"""Plan of a host in a deploy without a site, only from the host's data and given settings."""

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

    This machine resolves tags and revisions, unless ``lock_file`` names a lock. As in a site, the
    first run makes the API key, except under ``--dry``.

    Args:
        settings: settings as in a site's group_data. These settings override the settings and
            ``ssh_`` keys in the host's own data.

    Raises:
        PyinfraError: the message names every mistake in the settings.
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
