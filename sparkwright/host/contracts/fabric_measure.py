"""Measuring the fabric: pings, RDMA writes on both twins at once, an all-gather of all ranks."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkwright.host.contracts.fabric import Ping


@dataclass(frozen=True)
class Stream:
    """One ``ib_write_bw``; without an address it is the side that listens."""

    device: str
    port: int
    address: str = ""


@dataclass(frozen=True)
class Gather:
    """One rank of an all-gather through an image.

    Attributes:
        script: text of the Python program that each rank runs in the image.
        size: bytes that every rank has at the end.
        environment: of the rank, its interfaces and devices among it.
    """

    image: str
    script: str
    rank: int
    ranks: int
    master: str
    port: int
    size: int
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MeasureRequest:
    """What is measured now. ``listen`` starts the listening side and does not wait for its end."""

    pings: tuple[Ping, ...] = ()
    listen: tuple[Stream, ...] = ()
    write: tuple[Stream, ...] = ()
    gather: Gather | None = None


@dataclass(frozen=True)
class Pinged:
    """A ping, and why it was not answered; empty where it was."""

    address: str
    device: str
    size: int
    wrong: str = ""


@dataclass(frozen=True)
class Written:
    """Gb/s of one stream; or what was wrong."""

    device: str
    address: str
    gbits: float | None = None
    wrong: str = ""


@dataclass(frozen=True)
class Gathered:
    """Bus bandwidth in GB/s as nccl-tests have it, and the backend; or what was wrong."""

    gbytes: float | None = None
    backend: str = ""
    wrong: str = ""


@dataclass(frozen=True)
class MeasureAnswer:
    """What was measured."""

    pings: tuple[Pinged, ...] = ()
    writes: tuple[Written, ...] = ()
    gather: Gathered | None = None
