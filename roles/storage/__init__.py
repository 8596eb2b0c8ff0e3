"""Storage: /opt/models and the service directories, with owner and mode."""

from pyinfra.api.host import Host

from sparkwright.operations import directories
from sparkwright.run.state import HostRun, role


@role
def storage(host: Host, one: HostRun) -> None:
    """Have the directories of this host."""
    settings = one.settings
    directories.present(
        name="Storage: directories",
        directories=one.directories,
        existing_are_fine=(settings.models_root,),
    )
