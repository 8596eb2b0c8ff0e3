"""A recipe's container as an image of the catalog."""

import re
from dataclasses import dataclass
from typing import Any

from sparkwright.catalog import Catalog
from sparkwright.catalog.gpus import FAMILIES, GPUS
from sparkwright.engines import DEFAULT
from sparkwright.engines.tables import release
from sparkwright.extras.imports.names import distinct, slug
from sparkwright.recipes.recipe import Foreign, Options, Refused

_REFERENCE = re.compile(
    r"(?:(?P<host>[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::\d{1,5})?)/)?"
    r"(?P<path>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_HUB = "registry-1.docker.io"
#: vLLM's own.
_VLLMS = f"{_HUB}/vllm/vllm-openai"
#: Repositories whose tags name the version inside.
_KNOWN = (_VLLMS, "ghcr.io/ggml-org/llama.cpp")
#: Tags that are moved to newer builds.
_MOVING = ("latest", "nightly", "main", "dev")


@dataclass(frozen=True)
class Chosen:
    """The image that serves.

    Attributes:
        name, tag: of the catalog.
        version: of the engine inside, where somebody says it.
        entry: its new entry, as YAML has it; None where the catalog has it already.
    """

    name: str
    tag: str
    version: str | None
    entry: dict[str, Any] | None


def image_of(foreign: Foreign, catalog: Catalog, options: Options) -> Chosen:
    """The catalog's image where it has this one, else a new entry.

    Raises:
        Refused: for what is no reference, and for a name that only its author's machine has.
    """
    reference = options.image or foreign.container
    if reference is None:
        return _stock(foreign, catalog, options)
    parts = _REFERENCE.fullmatch(reference)
    if parts is None:
        raise Refused("container", repr(reference), "it is no reference of an image")
    host, path, tag, digest = parts.group("host", "path", "tag", "digest")
    if host and "." not in host and ":" not in host and host != "localhost":
        host, path = None, f"{host}/{path}"
    if host in (None, "docker.io", "index.docker.io"):
        host = _HUB
        if "/" not in path:
            reason = "a local name: no registry has this image"
            remedy = "--image REFERENCE names one that a registry has"
            raise Refused("container", repr(reference), reason, remedy)
    tag = tag or (f"sha256-{digest[7:19]}" if digest else "latest")
    repository = f"{host}/{path}"
    for image in catalog.images.values():
        build = image.tags.get(tag)
        if image.repository == repository and build and digest in (None, build.digest):
            version = options.engine_version or build.version
            moves = tag in _MOVING and build.digest is None
            # Of an import, or one that the library knows no more of than an import does.
            if image.name == _name(repository, tag) or version is None or moves:
                _note_risks(foreign, repository, tag, build.digest, version)
            return Chosen(image.name, tag, version, None)
    return _new(foreign, catalog, repository, tag, digest, options)


def _stock(foreign: Foreign, catalog: Catalog, options: Options) -> Chosen:
    """The engine's stock image: the catalog's newest tag, or a newer one that the recipe asks
    for."""
    image, least = catalog.images[foreign.engine.stock_image], foreign.least_vllm or "0"
    build = image.tags[image.newest_tag]
    if build.version and release(build.version) >= release(least):
        return Chosen(image.name, image.newest_tag, build.version, None)
    tag = f"v{'.'.join(map(str, release(least)))}"
    return _new(foreign, catalog, image.repository, tag, None, options)


def _new(
    foreign: Foreign, catalog: Catalog, repository: str, tag: str, digest: str | None,
    options: Options,
) -> Chosen:  # fmt: skip
    named = re.search(r"(?:^v?|-)(b\d{4,}|\d+\.\d+\.\d+)", tag) if repository in _KNOWN else None
    version = options.engine_version or (named[1] if named else None)
    _note_risks(foreign, repository, tag, digest, version)
    build = {
        "date": foreign.text.date, "version": version,
        "architectures": [FAMILIES[GPUS[options.gpu]].architecture],
        "source": f"{foreign.text.source}; architecture: assumed of the GPU that it is for",
        **({"digest": digest} if digest else {}),
    }  # fmt: skip
    name = _name(repository, tag)
    name = distinct(name, name in catalog.images, repository, tag, digest)
    estimate = "an estimate; the registry's manifest is what preflight counts"
    own = catalog.images[foreign.engine.stock_image]
    program = own.entrypoint if repository == own.repository else foreign.engine.program
    entry = {
        "kind": "image", "name": name, "repository": repository, "entrypoint": program,
        **({"engine": own.engine} if own.engine != DEFAULT else {}),
        "size": {"pull_gib": 10.0, "unpacked_gib": 24.0, "source": estimate},
        "newest_tag": tag, "tags": {tag: build},
    }  # fmt: skip
    return Chosen(name, tag, version, entry)


def _name(repository: str, tag: str) -> str:
    return slug(f"{repository.removeprefix(_HUB + '/')}-{tag}")


def _note_risks(
    foreign: Foreign, repository: str, tag: str, digest: str | None, version: str | None
) -> None:
    """Note whom a deploy trusts with what is in it."""
    shown, note = f"{repository.removeprefix(_HUB + '/')}:{tag}", foreign.remarks.note
    if repository != _VLLMS:
        note("publisher", "container", shown)
    if tag in _MOVING and not digest:
        note("moving-tag", "container", f"{tag} moves")
    if version is None:
        observed = f"{shown}: nobody says which {foreign.engine.title} it holds"
        note("unknown-version", "container", observed)
