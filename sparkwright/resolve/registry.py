"""Asking a container registry what a tag is: digest, platforms and bytes to pull.

Speaks the OCI distribution protocol (https://github.com/opencontainers/distribution-spec) with
the anonymous token dance that public registries want.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.dataclasses import dataclass

from sparkwright.catalog.entries import Digest
from sparkwright.resolve.messages import MESSAGES
from sparkwright.resolve.queries import TIMEOUT, asking
from sparkwright.resolve.references import Commit, ImageReference, Sha256, Size, hex_digits

if TYPE_CHECKING:
    import requests

_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_ACCEPT = {"Accept": ", ".join((*_INDEXES, *_MANIFESTS))}
#: What the kernel calls a machine -> what registries call it.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "amd64": "amd64", "arm64": "arm64"}
Architecture = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.-]+$")]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PlatformImage:
    """An image for one architecture; sizes in bytes of the parts to pull, by digest.

    Attributes:
        digest: of its own manifest.
        manifests: what Docker reads before any layer: index, where there is one, and manifest.
        config: with the ids of the unpacked layers.
        layers: in order; a layer may occur twice.
    """

    digest: Digest
    manifests: dict[Digest, Size]
    config: Annotated[dict[Digest, Size], Field(min_length=1, max_length=1)]
    layers: tuple[tuple[Digest, Size], ...]

    @property
    def files(self) -> dict[str, int]:
        """Bytes of everything to fetch, by the hex digits of its hash."""
        every = {**self.manifests, **self.config, **dict(self.layers)}
        return {hex_digits(digest): size for digest, size in every.items()}

    @property
    def pull_bytes(self) -> int:
        """Compressed bytes of the layers."""
        return sum(size for _, size in self.layers)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ResolvedImage:
    """A resolved tag; the lock's entry of an image.

    Attributes:
        digest: ``sha256:...`` of the manifest or index the tag points to; for a built image, of
            its base.
        platforms: by registry architecture (``arm64``, ``amd64``).
        commit: of a built image's context.
        context: sha256 of its files, where a lock says.
    """

    digest: Digest
    platforms: dict[Architecture, PlatformImage]
    commit: Commit | None = None
    context: Sha256 | None = None

    def local_name(self, reference: ImageReference) -> str:
        """Name of the image on a host, wherever it was pulled from: made of its hashes."""
        name = reference.name.rpartition(":")[0]
        if self.commit is None:
            return f"{name}:{self.digest.replace(':', '-')}"
        return f"{name}:{self.commit[:12]}-{self.digest[7:19]}"


def ask_registry(
    registry: str,
    repository: str,
    tag: str,
    credentials: str | None = None,
    *,
    title: str | None = None,
) -> ResolvedImage:
    """Ask a registry for a tag's or digest's platforms, and their sizes.

    Args:
        registry: ``http(s)://host[:port]``.
        credentials: ``user:password`` for a private image. Sent to the registry's token service.
        title: the image in messages.

    Raises:
        UserError: when the registry can't be reached, refuses, or has no such tag.
    """
    import requests  # a locked run sends no request, and this takes 50 ms to import

    where = title or f"image {registry}/{repository}@{tag}"
    base = f"{registry}/v2/{repository}"
    with (
        asking(where, f"the registry {registry}", answer="a manifest", setting="image_mirrors"),
        requests.Session() as session,
    ):
        answer = _get(session, f"{base}/manifests/{tag}", credentials)
        if (status := answer.status_code) in (401, 403, 404):
            message = "refused-account" if credentials and status != 404 else str(status)
            raise MESSAGES.refusal(message, where, status=status)
        answer.raise_for_status()
        digest = answer.headers.get("Docker-Content-Digest", "")
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
            raise MESSAGES.refusal("no-digest", where)
        own = {digest: len(answer.content)}
        return ResolvedImage(digest, _platforms(session, base, answer.json(), own))


def _get(session: requests.Session, url: str, credentials: str | None = None) -> requests.Response:
    answer = session.get(url, headers=_ACCEPT, timeout=TIMEOUT)
    scheme, _, rest = answer.headers.get("WWW-Authenticate", "").partition(" ")
    if answer.status_code != 401:
        return answer
    user, _, password = (credentials or "").partition(":")
    account = (user, password) if credentials else None
    if scheme.lower() == "basic" and account:
        session.auth = account
    elif scheme.lower() == "bearer":
        fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        realm = fields.pop("realm", "")
        token = session.get(realm, params=fields, auth=account, timeout=TIMEOUT)
        if not token.ok:
            return answer
        body = token.json()
        session.headers["Authorization"] = f"Bearer {body.get('token') or body.get('access_token')}"
    else:
        return answer
    return session.get(url, headers=_ACCEPT, timeout=TIMEOUT)


def _platforms(
    session: requests.Session, base: str, manifest: dict[str, Any], own: dict[str, int]
) -> dict[str, PlatformImage]:
    """Each architecture's manifest, configuration and layers."""
    children = manifest.get("manifests")
    if not isinstance(children, list):
        platform = _platform(manifest, own, next(iter(own)))
        blob = session.get(f"{base}/blobs/{next(iter(platform.config))}", timeout=TIMEOUT)
        architecture = str(blob.json().get("architecture")) if blob.ok else "unknown"
        return {architecture: platform}
    platform_images: dict[str, PlatformImage] = {}
    seen: dict[str, PlatformImage] = {}
    for child in children:
        platform = child.get("platform", {})
        if platform.get("os") != "linux":
            continue  # attestations call themselves unknown/unknown
        digest = str(child["digest"])
        if digest not in seen:
            answer = _get(session, f"{base}/manifests/{digest}")
            answer.raise_for_status()
            seen[digest] = _platform(answer.json(), own | {digest: len(answer.content)}, digest)
        platform_images[str(platform.get("architecture"))] = seen[digest]
    return platform_images


def _platform(manifest: dict[str, Any], manifests: dict[str, int], digest: str) -> PlatformImage:
    config, layers = manifest["config"], manifest["layers"]
    return PlatformImage(
        digest,
        manifests,
        {config["digest"]: int(config["size"])},
        tuple((layer["digest"], int(layer["size"])) for layer in layers),
    )
