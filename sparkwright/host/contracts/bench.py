"""What a benchmark ran on."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkwright.host.contracts.gpu import Gpu


@dataclass(frozen=True)
class BenchService:
    """A service that is measured."""

    name: str
    home: str
    address: str
    port: int


@dataclass(frozen=True)
class BenchRequest:
    """What is reported: versions and what serves, or with ``samples`` the GPU under load.

    Attributes:
        samples: of the GPU, one a second while a service is busy; 0 for none.
        seconds: how long the load is waited for.
        state: directory that says which exclusive services sleep.
    """

    services: tuple[BenchService, ...] = ()
    samples: int = 0
    seconds: float = 90.0
    state: str = ""


@dataclass(frozen=True)
class Running:
    """One service as its container and its release's files have it; None where there is none.

    Attributes:
        vllm: its version, as it reports it.
        image: the name on the host, made of the digest.
        models: repository -> commit, by what is mounted.
    """

    vllm: str | None = None
    release: str | None = None
    recipe: str | None = None
    tag: str | None = None
    image: str | None = None
    digest: str | None = None
    models: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BenchAnswer:
    """The first GPU before or after the load; what serves; or the GPU under load.

    Attributes:
        kernel: Linux's release; None where the program of another version answers.
        sleeping: exclusive services that sleep -> the one of their group that runs.
    """

    gpu: Gpu | None = None
    services: dict[str, Running] = field(default_factory=dict)
    samples: tuple[Gpu, ...] = ()
    kernel: str | None = None
    sleeping: dict[str, str] = field(default_factory=dict)
