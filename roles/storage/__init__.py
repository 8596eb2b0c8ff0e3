"""Storage: /opt/models and the service directories, with owner and mode."""

from pyinfra.api.host import Host

from sparkwright.operations import directories
from sparkwright.run.state import HostRun, role


@role
def storage(host: Host, host_run: HostRun) -> None:
    """Make the directories of this host."""
    settings = host_run.settings
    directories.present(
        name="Storage: directories",
        directories=host_run.directories,
        existing_are_fine=(settings.models_root,),
    )
