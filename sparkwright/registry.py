"""Asking a container registry what a tag is: digest, platforms and bytes to pull.

Speaks the OCI distribution protocol (https://github.com/opencontainers/distribution-spec) with
the anonymous token dance that public registries want.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import requests

from sparkwright.plan import ImageReference
from sparkwright.problems import Problem

_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_ACCEPT = {"Accept": ", ".join((*_INDEXES, *_MANIFESTS))}
_TIMEOUT = (5, 30)

#: What the kernel calls a machine -> what registries call it.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "amd64": "amd64", "arm64": "arm64"}


@dataclass(frozen=True)
class ResolvedImage:
    """What a tag was found to be.

    Attributes:
        digest: ``sha256:...`` of the manifest or index the tag points to; for a built image, of
            its base.
        pull_bytes: by registry architecture (``arm64``, ``amd64``), the compressed bytes.
        commit: of a built image's context.
        manifests: by architecture, the digest of its own manifest.
    """

    digest: str
    pull_bytes: Mapping[str, int]
    commit: str | None = None
    manifests: Mapping[str, str] = field(default_factory=dict)

    def pull_reference(self, reference: ImageReference) -> str:
        """What Docker is given: by digest, or by the name that a built image gets."""
        if self.commit is None:
            return f"{reference.pull_name}@{self.digest}"
        return f"{reference.pull_name}:{self.commit[:12]}-{self.digest[7:19]}"


class RegistryError(Exception):
    """The registry could not be asked, or does not have the tag; carries the problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


def resolve_image(reference: ImageReference) -> ResolvedImage:
    """Resolve a tag to a digest, its platforms and their sizes.

    Raises:
        RegistryError: when the registry can't be reached, refuses, or has no such tag.
    """
    where = f"image {reference.pull_name}:{reference.tag}"
    session = requests.Session()
    base = f"{reference.registry}/v2/{reference.repository}"
    try:
        answer = _get(session, f"{base}/manifests/{reference.digest or reference.tag}")
        if answer.status_code in (401, 403):
            raise RegistryError(
                Problem(
                    where,
                    f"the registry refuses (HTTP {answer.status_code})",
                    "check the name, or log in where the image is private",
                )
            )
        if answer.status_code == 404:
            raise RegistryError(
                Problem(
                    where,
                    "the registry has no such repository or tag",
                    "check the tag's spelling, or take another tag of the catalog",
                )
            )
        answer.raise_for_status()
        manifest = answer.json()
        digest = answer.headers.get("Docker-Content-Digest", "")
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
            raise RegistryError(
                Problem(
                    where,
                    "the registry names no digest for the tag",
                    "use a registry that answers Docker-Content-Digest",
                )
            )
        sizes, manifests = _platforms(session, base, manifest, digest)
        return ResolvedImage(digest, sizes, None, manifests)
    except requests.RequestException as error:
        raise RegistryError(
            Problem(
                where,
                f"the registry {reference.registry} could not be asked: {_reason(error)}",
                "check the network of this machine, or set image_mirrors",
            )
        ) from error


def _get(session: requests.Session, url: str) -> requests.Response:
    answer = session.get(url, headers=_ACCEPT, timeout=_TIMEOUT)
    challenge = answer.headers.get("WWW-Authenticate", "")
    if answer.status_code == 401 and challenge.lower().startswith("bearer "):
        fields = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        realm = fields.pop("realm", "")
        token = session.get(realm, params=fields, timeout=_TIMEOUT)
        if token.ok:
            body = token.json()
            session.headers["Authorization"] = (
                f"Bearer {body.get('token') or body.get('access_token')}"
            )
            answer = session.get(url, headers=_ACCEPT, timeout=_TIMEOUT)
    return answer


def _platforms(
    session: requests.Session, base: str, manifest: dict[str, object], own: str
) -> tuple[dict[str, int], dict[str, str]]:
    """By architecture: compressed bytes, and the digest of its manifest."""
    children = manifest.get("manifests")
    if not isinstance(children, list):
        config = manifest.get("config")
        blob = (
            session.get(f"{base}/blobs/{config['digest']}", timeout=_TIMEOUT)
            if isinstance(config, dict)
            else None
        )
        architecture = (
            str(blob.json().get("architecture")) if blob is not None and blob.ok else "unknown"
        )
        return {architecture: _layers(manifest)}, {architecture: own}
    sizes: dict[str, int] = {}
    manifests: dict[str, str] = {}
    layers: dict[str, int] = {}
    for child in children:
        platform = child.get("platform", {})
        if platform.get("os") != "linux":
            continue  # attestations call themselves unknown/unknown
        digest = child["digest"]
        if digest not in layers:
            answer = _get(session, f"{base}/manifests/{digest}")
            answer.raise_for_status()
            layers[digest] = _layers(answer.json())
        sizes[str(platform.get("architecture"))] = layers[digest]
        manifests[str(platform.get("architecture"))] = digest
    return sizes, manifests


def _layers(manifest: dict[str, object]) -> int:
    layers = manifest.get("layers")
    return sum(int(layer["size"]) for layer in layers) if isinstance(layers, list) else 0


def _reason(error: requests.RequestException) -> str:
    text = str(error)
    for known in (
        "Connection refused",
        "No route to host",
        "Name or service not known",
        "timed out",
        "Temporary failure in name resolution",
    ):
        if known in text:
            return known
    return text[:200]
