"""Storage: /opt/models and the service directories, with owner and mode."""

from __future__ import annotations

from pyinfra.context import ctx_host

from sparkwright.operations import directories
from sparkwright.run.state import host_run
from sparkwright.site import services as desired


def storage() -> None:
    """Have the directories of this host."""
    one = host_run(ctx_host.get())
    if one is not None:
        settings = one.settings
        directories.present(
            name="Storage: directories",
            directories=desired.directories(one.desired.plan),
            existing_are_fine=(settings.models_root,),
        )
