"""Which tags the lab's registry serves, as data: repository, tags, and what each holds."""

from __future__ import annotations

from dataclasses import dataclass

REPOSITORY = "aeon-7/aeon-vllm-ultimate"
"""Under the name that the real image has on its own registry."""

BOTH = ("arm64", "amd64")


@dataclass(frozen=True)
class Tag:
    """One image and the names it goes by.

    version: of the vLLM stood for; fault: built in (see `vllm_stand_in.faults`); architectures:
    the entries of its index; docker_types: written with Docker's media types, as older images
    are, instead of OCI's.
    """

    names: tuple[str, ...]
    version: str
    fault: str = ""
    architectures: tuple[str, ...] = BOTH
    docker_types: bool = False


TAGS = (
    Tag(("2026-07-01-v0.24.0", "latest"), "0.24.0"),
    Tag(("2026-06-18-v0.23.0-dflashfix",), "0.23.0"),
    # The real one is of the 0.22.1 lineage, for which there is no table of arguments.
    Tag(("2026-06-11-pr41703",), "0.23.0", docker_types=True),
    Tag(("lab-never-healthy",), "0.24.0", fault="never-healthy"),
    Tag(("lab-wedge",), "0.24.0", fault="wedge"),
    Tag(("lab-crash",), "0.24.0", fault="crash-after=5"),
    Tag(("lab-oom",), "0.24.0", fault="oom"),
    Tag(("lab-garbage",), "0.24.0", fault="garbage"),
    Tag(("lab-arm64-only",), "0.24.0", architectures=("arm64",)),
)
