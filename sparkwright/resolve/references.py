"""References to resolve over the network: images at a tag, models at a revision."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from sparkwright.config.secrets import Source
from sparkwright.host.lib.records import dataclass, field
from sparkwright.resolve.pinned_text import PinnedText

#: Commits and digests become names of directories, and words of commands.
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
#: Bytes; strict, since True and "12" are not numbers.
Size = Annotated[int, Field(strict=True, ge=0, le=2**50)]


def hex_digits(digest: str) -> str:
    """The 64 hex digits of ``sha256:...``."""
    return digest.partition(":")[2]


@dataclass(frozen=True)
class BuildReference:
    """Source of a built image: a folder of a git repository, and a pinned base image.

    Attributes:
        base_name: the base's name in the Dockerfile's FROM.
    """

    context: str
    directory: str
    base: ImageReference
    base_name: str


@dataclass(frozen=True)
class Steps:
    """Steps that derive an image from its base.

    Attributes:
        recipe: recipe with the steps.
        text: the steps as JSON, in which files are named by their sha256.
        files: name and content of each file.
    """

    recipe: str
    text: str
    files: tuple[tuple[str, bytes], ...]

    def image(self, base: str) -> str:
        """Name of the image derived from a base with this digest: made from a hash of the digest
        and the steps.
        """
        inputs = hashlib.sha256(f"{base}\n{self.text}".encode()).hexdigest()
        return f"sparkwright.local/{self.recipe}:sha256-{inputs}"


@dataclass(frozen=True)
class ImageReference:
    """An image at a tag, with this host's source for it.

    Attributes:
        name: ``host/path:tag``, with any mirror.
        registry: ``http(s)://host[:port]`` that resolves digests.
        repository: path within the registry.
        pull_name: ``host[:port]/path``, without a tag: the name for Docker.
        digest: the catalog's pin of the tag; None to query the registry.
        key: file with the required public key of the image's signature, if any.
        build: source of an image that no registry has; the tag is then a git revision.
        steps: steps that derive an image from this image on the host.
    """

    image: str
    name: str
    registry: str
    repository: str
    pull_name: str
    tag: str
    digest: str | None = None
    key: str | None = None
    build: BuildReference | None = None
    steps: Steps | None = None

    @property
    def pulled(self) -> ImageReference:
        """The image in a registry: this image, or the base of its build."""
        return self.build.base if self.build else self


@dataclass(frozen=True)
class ModelReference:
    """A model's repository at a revision, and its path in the container.

    Attributes:
        facts: whether the model is served from its own files; facts about these files are then also
            required.
        code: ``org/name/path`` of files that run code and that a user has read.
        choice: served files of a GGUF repository: a quantization (``Q4_K_M``), the path of a file,
            or its largest size (``12GiB``), each with the repository's projector; or a path, a
            comma, and the projector's path or ``none``; empty for other formats.
        gguf: whether to serve the GGUF files of a repository with several formats.
    """

    name: str
    repository: str
    revision: str
    mount: str
    facts: bool = False
    code: tuple[str, ...] = ()
    choice: str = ""
    gguf: bool = False

    @property
    def key(self) -> str:
        """``repository@revision``; for GGUF files with ``:choice``."""
        return f"{self.whole}{self.choice and ':'}{self.choice}"

    @property
    def whole(self) -> str:
        """``repository@revision``."""
        return f"{self.repository}@{self.revision}"


@dataclass(frozen=True)
class References:
    """Everything that a host's plan names.

    Attributes:
        hub_endpoint: hub that resolves the host's models.
        registry_auth: source of the accounts of private registries, if any.
        private: names and addresses in private networks that registries and hubs may lead to.
        files: files of repositories, ``repository@commit/path`` -> their text.
    """

    images: tuple[ImageReference, ...]
    models: tuple[ModelReference, ...]
    hub_endpoint: str
    registry_auth: Source | None = None
    private: tuple[str, ...] = ()
    files: Mapping[str, PinnedText] = field(default_factory=dict)
