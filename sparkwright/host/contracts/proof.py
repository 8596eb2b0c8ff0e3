"""Proof of what a service needs: models, images, and the GPU inside a container."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelAt:
    """A model's directory, and the commit that it must hold."""

    directory: str
    commit: str


@dataclass(frozen=True)
class Versions:
    """What a proof of the GPU depends on: another one of these needs a new proof."""

    driver: str
    docker: str
    toolkit: str


@dataclass(frozen=True)
class ProofRequest:
    """What is to be proved. The answer is what is wrong, as lines.

    Attributes:
        images: names in Docker that must be there.
        gpu_images: images in which a container must see the GPU.
        record, versions: the file in which that is written down, and with what it was proved.
    """

    models: tuple[ModelAt, ...] = ()
    images: tuple[str, ...] = ()
    gpu_images: tuple[str, ...] = ()
    record: str = ""
    versions: Versions | None = None
