"""Exceptions to a container's default restrictions, as data with a reason."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints, field_validator, model_validator

from sparkwright.catalog.data import Data

#: Capabilities that a container may be given, each with its purpose. With any other capability
#: (SYS_ADMIN, DAC_OVERRIDE, NET_ADMIN ...) root in a container is, or soon becomes, root on the
#: host.
CAPABILITIES = {
    "IPC_LOCK": "lock memory beyond the limit, for buffers of RDMA",
    "SYS_NICE": "bind memory to a NUMA node",
}
#: A directory in a container.
Place = Annotated[
    str, StringConstraints(pattern=r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*|/\.[a-z0-9-]+)+$")
]
#: Paths of the kernel, not of an image: never writable.
_KERNELS = ("/proc", "/sys", "/dev")


def refuse_privileged(data: Any) -> Any:
    """Return the settings unchanged, unless they require a privileged container.

    Raises:
        ValueError: the settings have ``privileged``; the message names the settings for the
            intended effect.
    """
    if isinstance(data, dict) and "privileged" in data:
        raise ValueError(
            "a privileged container is not allowed: its root would be root on the host. Name the "
            f"required capability in exceptions.cap_add ({' or '.join(CAPABILITIES)})"
        )
    return data


class Exceptions(Data):
    """Exceptions to a container's default restrictions, and their reason.

    Attributes:
        cap_add: capabilities: ``IPC_LOCK`` or ``SYS_NICE``; default: none.
        writable: directories that the container may write to under ``hardening: strict``, in
            addition to the image's directories.
        pids_limit: limit of processes and threads; default 4096.
        reason: reason for the exceptions; written into the Compose file.
    """

    cap_add: tuple[str, ...] = ()
    writable: tuple[Place, ...] = ()
    pids_limit: int | None = Field(default=None, ge=256, le=65536)
    reason: Annotated[str, StringConstraints(min_length=8)]

    _refuse_privileged = model_validator(mode="before")(refuse_privileged)

    @field_validator("cap_add")
    @classmethod
    def _of_the_few(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in CAPABILITIES:
                raise ValueError(
                    f"the capability {name} is not allowed: with it, code of a model could leave "
                    f"its container. Allowed: {', '.join(CAPABILITIES)}"
                )
        return names

    @field_validator("writable")
    @classmethod
    def _of_the_image(cls, places: tuple[str, ...]) -> tuple[str, ...]:
        for path in places:
            if path.startswith(_KERNELS):
                raise ValueError(f"{path} belongs to the kernel: a container must not write to it")
        return places
