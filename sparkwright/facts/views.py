"""Typed views of a host's observation, all from one remote execution; and the host's part of the
fabric, which has its own query.
"""

from typing import ClassVar

from pyinfra.api.command import StringCommand

from sparkwright.facts import hooks
from sparkwright.facts.observation import ProgramFact, View
from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest, FabricState
from sparkwright.host.lib.disks import Disk
from sparkwright.host.lib.docker import Docker as DockerState
from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.observe import Memory, Observation

# Types of facts, and of lists in facts, that `pyinfra HOST fact` prints.
hooks.printable(Observation, Gpu, DockerState, Memory, Disk, FabricState)


class NvidiaDriver(View[str | None]):
    """Version of the NVIDIA driver, e.g. ``580.95.05``; None if missing."""

    def part(self, observation: Observation) -> str | None:
        """The driver of the first GPU."""
        return next((gpu.driver for gpu in observation.gpu.gpus), None)


class Gpus(View[tuple[Gpu, ...]]):
    """GPUs, as nvidia-smi lists them: name, compute capability, driver, memory."""

    nothing: ClassVar[tuple[Gpu, ...]] = ()

    def part(self, observation: Observation) -> tuple[Gpu, ...]:
        """All GPUs of the host."""
        return observation.gpu.gpus


class Docker(View[DockerState | None]):
    """Docker's version, root, runtimes and storage driver; None if Docker does not answer."""

    def part(self, observation: Observation) -> DockerState | None:
        """Version, root and runtimes of the Docker daemon."""
        return observation.docker


class ContainerToolkit(View[str | None]):
    """First line of ``nvidia-ctk --version``; None if nvidia-ctk is not installed."""

    def part(self, observation: Observation) -> str | None:
        """The toolkit's version."""
        lines = observation.toolkit.out.strip().splitlines()
        return lines[0] if lines and observation.toolkit.ok else None


class HostMemorySize(View[Memory]):
    """MemTotal and MemAvailable in bytes, including the GPU's memory on a GB10."""

    def part(self, observation: Observation) -> Memory:
        """Memory of the host."""
        return observation.memory


class Disks(View[dict[str, Disk]]):
    """The file systems of the models and of the services, by path; sizes in bytes."""

    nothing: ClassVar[dict[str, Disk]] = {}

    def part(self, observation: Observation) -> dict[str, Disk]:
        """File systems by path."""
        return observation.disks


class LockHolder(View[str | None]):
    """Owner of the host's lock, ``ann@laptop``; None if the host is not locked."""

    def part(self, observation: Observation) -> str | None:
        """The holder of the host's lock."""
        return observation.lock.by if observation.lock else None


class Fabric(ProgramFact[FabricState]):
    """Ports of the ConnectX-7, their twins, addresses, RDMA devices, and their neighbours.

    The fact takes one remote execution, and changes nothing. As root the query also probes each
    port's neighbours; without sudo it returns the neighbours in the kernel's table.

    **Example:**

    .. code:: python

        state = host.get_fact(Fabric)
        [rail.speed for rail in state.rails]
    """

    program, answer = fabric, FabricState

    def command(self, ask: bool = True) -> StringCommand:
        """Return the command; ``ask``: whether to probe for neighbours."""
        return self.asking(FabricRequest(ask=ask))
