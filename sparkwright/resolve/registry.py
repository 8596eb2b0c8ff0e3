"""Resolution of a tag at a container registry: digest, platforms and bytes to pull.

The module uses the OCI distribution protocol (https://github.com/opencontainers/distribution-spec)
with the anonymous token exchange that public registries require.

cosign signs a small document (simple signing) that has the image's digest. The lock keeps the
document and the signature, so every later run verifies both again, without a registry.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from sparkwright.catalog.entries import Digest
from sparkwright.documents import bounds, json_text, text_files
from sparkwright.resolve import messages, references
from sparkwright.resolve.queries import Answer, Server, asking, basic

#: Largest size of a document or a key in bytes.
LARGEST = 16 << 10
_TYPE = "cosign container image signature"
_Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+=*$", max_length=2 * LARGEST)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", defer_build=True))
class Signature:
    """The signed document and its signature, in base64."""

    payload: _Base64
    signature: _Base64

    def holds(self, digest: str, key: str) -> bool:
        """Return whether the document is signed by a key and names this digest.

        Raises like ``verifier``.
        """
        from cryptography.exceptions import InvalidSignature

        verify, payload = verifier(key), self.payload
        try:
            verify(b64decode(self.signature), b64decode(payload))
            critical = json_text.load_object(b64decode(payload))["critical"]
            signed = critical["type"], critical["image"]["docker-manifest-digest"]
        except (InvalidSignature, bounds.Unusable, LookupError, TypeError, ValueError):
            return False
        return signed == (_TYPE, digest)


def verifier(file: str) -> Callable[[bytes, bytes], None]:
    """Return a function that checks a signature of data with the public key in a file on the
    controller.

    Raises:
        UserError: the file has no public key (ECDSA on P-256 or Ed25519, in PEM).
    """
    from cryptography.exceptions import UnsupportedAlgorithm  # takes 40 ms; only keys need it
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    problem = "the file has no public key (ECDSA on P-256 or Ed25519, in PEM)"
    try:
        key = load_pem_public_key(text_files.read_bytes(Path(file), LARGEST))
        if isinstance(key, ed25519.Ed25519PublicKey):
            return key.verify
        if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
            return lambda signature, data: key.verify(signature, data, ec.ECDSA(SHA256()))
    except bounds.Unusable as error:
        problem = error.fault
    except (ValueError, UnsupportedAlgorithm):
        pass
    raise messages.MESSAGES.refusal("no-public-key", f"image_keys: {file}", problem=problem)


_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
#: Largest number of an index's entries: platforms, and an attestation of each platform.
_MOST_PLATFORMS = 100
#: Largest number of an image's signatures to check, and the annotation in which cosign stores a
#: signature.
_MOST_SIGNATURES, _SIGNATURE = 32, "dev.cosignproject.cosign/signature"
#: Kernel's name of a machine -> registries' name.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "amd64": "amd64", "arm64": "arm64"}
Architecture = Annotated[str, Field(pattern=r"^[a-z0-9_.-]+$")]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", defer_build=True))
class PlatformImage:
    """An image for one architecture; sizes in bytes of the parts to pull, by digest.

    Attributes:
        digest: digest of this architecture's own manifest.
        manifests: documents that Docker reads before any layer: the index, if any, and the
            manifest.
        config: configuration with the ids of the unpacked layers.
        layers: layers in order; a layer may occur twice.
    """

    digest: Digest
    manifests: dict[Digest, references.Size]
    config: Annotated[dict[Digest, references.Size], Field(min_length=1, max_length=1)]
    layers: tuple[tuple[Digest, references.Size], ...]

    @property
    def files(self) -> dict[str, int]:
        """Bytes of each part to fetch, by the hex digits of the part's hash."""
        every = {**self.manifests, **self.config, **dict(self.layers)}
        return {references.hex_digits(digest): size for digest, size in every.items()}


@dataclass(frozen=True, config=ConfigDict(extra="forbid", defer_build=True))
class ResolvedImage:
    """A resolved tag; the lock's entry for an image.

    Attributes:
        digest: ``sha256:...`` of the tag's manifest or index; for a built image, of its base.
        platforms: platforms by registry architecture (``arm64``, ``amd64``).
        commit: commit of a built image's context.
        context: sha256 of the context's files, if a lock has the hash.
        signature: signature of the digest, if a key is named for the image.
    """

    digest: Digest
    platforms: dict[Architecture, PlatformImage]
    commit: references.Commit | None = None
    context: references.Sha256 | None = None
    signature: Signature | None = None

    def is_signed(self, key: str | None) -> bool:
        """Return whether a key signed the image's digest; always true without a key."""
        return not key or bool(self.signature and self.signature.holds(self.digest, key))

    def local_name(self, reference: references.ImageReference) -> str:
        """Name of the image on a host, from any source: made from its hashes."""
        if reference.steps:
            return reference.steps.image(self.digest)
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
    key: str | None = None,
    private: Sequence[str] = (),
) -> ResolvedImage:
    """Query a registry for a tag's or digest's platforms, and their sizes.

    Args:
        registry: ``http(s)://host[:port]``.
        credentials: ``user:password`` for a private image, which are sent to the registry's token
            service.
        title: the image in messages.
        key: file with the public key of the required signature; None without a signature.
        private: servers in private networks to which the registry may redirect.

    Raises:
        UserError: the registry can't be reached, refuses, or has no such tag.
    """
    where = title or f"image {registry}/{repository}@{tag}"
    with asking(where, f"the registry {registry}", answer="a manifest", setting="image_mirrors"):
        session = _Repository(Server(registry, private), f"{registry}/v2/{repository}", credentials)
        answer = session.ask("manifests", tag)
        if (status := answer.status) in (401, 403, 404):
            message = "refused-account" if credentials and status != 404 else str(status)
            raise messages.MESSAGES.refusal(message, where, status=status)
        content = answer.required().content
        digest = digest_of(content)
        if tag.startswith("sha256:") and tag != digest:
            raise bounds.Unusable(f"the content's hash is {digest}", "choose another registry")
        platforms = _platforms(session, answer.json(), {digest: len(content)})
        kept = session.signatures(digest) if key else ()
        signature = next((item for item in kept if key and item.holds(digest, key)), None)
        return ResolvedImage(digest, platforms, signature=signature)


def digest_of(content: bytes) -> str:
    """``sha256:...`` of a manifest or blob."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class _Repository:
    """A repository of a registry, with its account."""

    def __init__(self, server: Server, address: str, credentials: str | None) -> None:
        self._server, self._base = server, address
        self._basic = basic(credentials) if credentials else {}
        self._headers = {"Accept": ", ".join((*_INDEXES, *_MANIFESTS))}

    def ask(self, kind: str, name: str) -> Answer:
        """Return a manifest or blob; send a token if the registry requires a token."""
        url = f"{self._base}/{kind}/{quote(name, safe=':')}"
        answer = self._server.get(url, self._headers)
        if answer.status != 401 or "Authorization" in self._headers:
            return answer
        scheme, _, rest = answer.headers.get("WWW-Authenticate", "").partition(" ")
        if scheme.lower() == "basic":
            self._headers |= self._basic
        elif scheme.lower() == "bearer":
            fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
            realm = fields.pop("realm", "")
            query = f"{'&' if '?' in realm else '?'}{urlencode(fields)}"
            token = self._server.get(realm + query, self._basic)
            if token.status == 200:
                text = token.json().get("token") or token.json()["access_token"]
                self._headers["Authorization"] = f"Bearer {text}"
        return self._server.get(url, self._headers) if "Authorization" in self._headers else answer

    def exact(self, kind: str, digest: str) -> bytes:
        """A manifest or blob by its digest. Raises Unusable for other content."""
        content = self.ask(kind, digest).required().content
        if digest_of(content) != digest:
            raise bounds.Unusable(f"the content does not match {digest}", "choose another registry")
        return content

    def signatures(self, digest: str) -> Iterator[Signature]:
        """Stored signatures of an image: at its tag for signatures, and as its referrers."""
        answer = self.ask("referrers", digest)
        referrers = answer.json()["manifests"] if answer.status == 200 else []
        names = [str(item["digest"]) for item in referrers[:_MOST_SIGNATURES]]
        for name in (f"{digest.replace(':', '-')}.sig", *names):
            answer = self.ask("manifests", name)
            layers = answer.json().get("layers", []) if answer.status == 200 else []
            for layer in layers[:_MOST_SIGNATURES]:
                signature = (layer.get("annotations") or {}).get(_SIGNATURE)
                if signature and layer["size"] <= LARGEST:
                    payload = b64encode(self.exact("blobs", layer["digest"])).decode()
                    yield Signature(payload, signature)


def _platforms(
    session: _Repository, manifest: dict[str, Any], own: dict[str, int]
) -> dict[str, PlatformImage]:
    """Each architecture's manifest, configuration and layers."""
    children = manifest.get("manifests")
    if not isinstance(children, list):
        platform = _platform(manifest, own, next(iter(own)))
        config = json_text.load_object(session.exact("blobs", next(iter(platform.config))))
        return {str(config.get("architecture")): platform}
    if len(children) > _MOST_PLATFORMS:
        raise bounds.Unusable(f"more than {_MOST_PLATFORMS} platforms", "choose another image")
    platform_images: dict[str, PlatformImage] = {}
    seen: dict[str, PlatformImage] = {}
    for child in children:
        platform = child.get("platform", {})
        if platform.get("os") != "linux":
            continue  # attestations have the platform unknown/unknown
        digest = str(child["digest"])
        if digest not in seen:
            content = session.exact("manifests", digest)
            data = json_text.load_object(content)
            seen[digest] = _platform(data, own | {digest: len(content)}, digest)
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
