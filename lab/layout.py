"""The virtual fleet's names, addresses and paths."""

from dataclasses import dataclass
from pathlib import Path

BRIDGE = "sw-lab"
CONTROLLER = "10.213.77.1"
PREFIX_LENGTH = 24

#: Folder of a running fleet, removed by `down`: keys, known_hosts, machines, logs.
STATE = Path("/var/lib/sparkwright-lab")
#: Folder of slow builds that every fleet shares: base file system, serving image.
CACHE = Path("/var/cache/sparkwright-lab")

SSH = STATE / "ssh"
USER = "spark"
REGISTRY_PORT = 5000
HUB_PORT = 8880
APT_PORT = 8881


@dataclass(frozen=True)
class Machine:
    """A systemd-nspawn machine.

    Attributes:
        gpu: the machine's fake GPU (a key of ``fakes.GPUS``); None for the depot.
        memory_kib: MemTotal in /proc/meminfo; None for this machine's value.
        dgx: whether the machine has the release files of DGX OS.
        bare: whether the machine has neither Docker nor NVIDIA's container toolkit.
        newest: whether the machine's Docker is Debian's newest, with containerd's image store, as
            in fresh installations of Docker 29.
        devices: device nodes of a real GPU, for the machine (`lab/gpu`).
    """

    name: str
    address: str
    gpu: str | None = None
    memory_kib: int | None = None
    dgx: bool = False
    bare: bool = False
    newest: bool = False
    devices: tuple[str, ...] = ()

    @property
    def machine(self) -> str:
        """The name for systemd-nspawn; it is short, because it is part of the network interface's
        name.
        """
        return f"sw-{self.name}"

    @property
    def home(self) -> Path:
        """Folder of the machine's overlay, Docker storage, log and process id."""
        return STATE / "machines" / self.name

    @property
    def root(self) -> Path:
        """The machine's root file system, mounted while the machine runs."""
        return self.home / "root"


#: MemTotal of a real Spark reads 125513944 to 127601388 kB, never 128 GiB.
SPARK_MEMORY = 127601388
BOX_MEMORY = 64 * 1024 * 1024

DEPOT = Machine("depot", "10.213.77.2")
#: The depot's second address, for large files, which have another origin, as in the real hub.
CDN = "10.213.77.3"
HOSTS = (
    Machine("spark-1", "10.213.77.11", "gb10", SPARK_MEMORY, dgx=True),
    Machine("spark-2", "10.213.77.12", "gb10", SPARK_MEMORY, dgx=True),
    Machine("rtx-1", "10.213.77.13", "rtx5090", BOX_MEMORY),
    Machine("hopper-1", "10.213.77.14", "h200", BOX_MEMORY),
)
#: Machines that start only on request: more Sparks, for measurements with many hosts, a bare box,
#: and a box with the newest Docker.
SPARES = (
    *(
        Machine(f"spark-{n}", f"10.213.77.{20 + n}", "gb10", SPARK_MEMORY, dgx=True)
        for n in range(3, 9)
    ),
    Machine("bare-1", "10.213.77.31", "rtx5090", BOX_MEMORY, bare=True),
    Machine("newdocker-1", "10.213.77.32", "rtx5090", BOX_MEMORY, newest=True),
)
#: Hosts that only `lab/gpu` starts, one for each real GPU of this machine.
GPU_HOSTS = tuple(
    Machine(
        f"gpu-{number + 1}",
        f"10.213.77.{41 + number}",
        devices=(f"/dev/nvidia{number}", "/dev/nvidiactl", "/dev/nvidia-uvm",
                 "/dev/nvidia-uvm-tools"),
    )
    for number in range(8)
)  # fmt: skip
MACHINES = (DEPOT, *HOSTS, *SPARES, *GPU_HOSTS)
