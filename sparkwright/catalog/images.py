"""Images: what a container image repository and its tags hold."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from sparkwright.catalog.claims import Duties, GpuClaim, ImageVariable, License, OtherImage
from sparkwright.catalog.containers import Place
from sparkwright.catalog.data import OWN, Data, Gib, Name, Scalar
from sparkwright.catalog.issues import Issue

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


class Tag(Data):
    """One tag of an image: what it holds and where that is said.

    Attributes:
        vllm: the vLLM version inside; ``None`` where no card says it.
        digest: what the tag is pinned to by the card itself.
        names: other tags that pointed here at some time, such as ``latest``.
        rollback: the tag that the card names to go back to.
        architectures: as the card claims them; the registry's manifest is what counts.
        components: what is inside beside vLLM -> its version, as its card gives it.
        adds, fixes, breaks: in words, over the tag before; breakage that can be checked is in the
            image's issues.
        date: when it was pushed, as far as a card says.
    """

    date: dt.date | None = None
    vllm: str | None
    digest: Digest | None = None
    names: tuple[str, ...] = ()
    rollback: str | None = None
    architectures: tuple[Literal["arm64", "amd64"], ...] = ("arm64",)
    components: dict[str, str] = Field(default_factory=dict)
    adds: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    source: str = OWN


class ImageSize(Data):
    """Sizes in GiB, for checks made before the registry is queried.

    Attributes:
        pull_gib: what is downloaded.
        unpacked_gib: what it takes on the disk.
        source: who says so, or that it is an estimate and of what.
    """

    pull_gib: Gib
    unpacked_gib: Gib
    source: str | None = None


class Build(Data):
    """An image that is built on the host from a git repository at a pinned commit.

    Attributes:
        context: https address of the repository; a tag of the image is a revision of it.
        directory: the folder with the Dockerfile.
        base: the image that the Dockerfile starts from: an entry of the catalog.
        base_tag: the tag under which the Dockerfile names it.
    """

    context: str
    directory: str
    base: Name
    base_tag: str


class Variables(Data):
    """Names of the environment variables of an image that is not driven by arguments.

    Everything that has no variable goes to ``extra_arguments``, verbatim.

    Attributes:
        model, drafter: path of the body, and of the drafter.
        num_speculative_tokens: draft tokens a step.
        served_name: the main served name.
        extra_arguments: the variable for arguments without one of their own.
        arguments: ``vllm serve`` argument -> its variable.
        defaults: what the entry point takes for an argument whose variable is not set.
        sets: flags that the entry point sets by itself; taken back where the service has them not.
    """

    model: str
    drafter: str
    num_speculative_tokens: str
    served_name: str
    extra_arguments: str
    arguments: dict[str, str]
    defaults: dict[str, Scalar] = Field(default_factory=dict)
    sets: tuple[str, ...] = ()


class Image(Data):
    """A container image repository and its tags.

    Attributes:
        repository: registry host and path, without a tag.
        size: sizes of a pull and on the disk.
        newest_tag: what services take that name no tag.
        tags: tag -> what it holds.
        engine: the engine inside, a name of ``sparkwright.engines``.
        entrypoint: the engine's program; for an image that is driven by variables the path of its
            own entry point, which starts the engine's program by its name.
        variables: set for images that are driven by the environment.
        build: set for images that no registry has.
        writable: directories that its programs write to, which ``hardening: strict`` leaves so.
        gpus: what its card says of GPUs.
        license: the terms of what is inside.
        duties: what its card asks of whoever runs it.
        settings: variables that its card documents beside those of ``variables``.
        beside: other images that its card names.
        issues: known mistakes with this image, by tag.
    """

    kind: Literal["image"]
    name: Name
    repository: str
    engine: str = "vllm"
    entrypoint: str = "vllm"
    size: ImageSize
    newest_tag: str
    tags: dict[str, Tag] = Field(min_length=1)
    variables: Variables | None = None
    build: Build | None = None
    # Caches of vLLM, FlashInfer, inductor, Triton and CUDA's driver, by their own defaults.
    writable: tuple[Place, ...] = ("/tmp", "/root/.cache", "/root/.config", "/root/.nv",
                                   "/root/.triton")  # fmt: skip
    gpus: tuple[GpuClaim, ...] = ()
    license: License | None = None
    duties: Duties | None = None
    settings: tuple[ImageVariable, ...] = ()
    beside: tuple[OtherImage, ...] = ()
    issues: tuple[Issue, ...] = ()

    @model_validator(mode="after")
    def _own_entry_point_is_named(self) -> Image:
        if self.variables and not self.entrypoint.startswith("/"):
            raise ValueError(
                "an image that is driven by variables needs the path of its own ENTRYPOINT in "
                "'entrypoint' (docker inspect shows it): the API key is handed to what it starts"
            )
        return self
