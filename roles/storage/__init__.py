"""Storage: /opt/models and the service directories, with owner and mode."""

from pyinfra.api.host import Host

from sparkwright.operations import directories
from sparkwright.run.state import HostRun, role
from sparkwright.site import services as desired


@role
def storage(host: Host, one: HostRun) -> None:
    """Have the directories of this host."""
    settings = one.settings
    directories.present(
        name="Storage: directories",
        directories=desired.directories(one.desired.plan),
        existing_are_fine=(settings.models_root,),
    )
