"""Writes, reads and checks the requests of the program: JSON files.

Every mistake is one message that names the key.
"""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import TypeVar

from sparkwright.host.fetch.messages import Failed
from sparkwright.host.lib import receipt
from sparkwright.host.lib.records import dataclass, decode, encode, field


@dataclass(frozen=True)
class FetchFile:
    """A file of a repository.

    Attributes:
        path: within the repository, with slashes.
        sha256: of the content, for LFS files and blobs of images.
        blob_id: git's SHA-1 of the content, for all other files.
    """

    path: str
    size: int
    sha256: str | None = None
    blob_id: str | None = None


@dataclass(frozen=True)
class ContentCheck:
    """Check of a model's headers and small files, in one of three forms.

    Attributes:
        why: consequence of a failure for the user.
        absent, present: prefix of tensor names that no tensor, or some tensor, has.
        file, key, contains: numbers or texts that a list in a JSON file contains.
    """

    id: str
    why: str
    absent: str | None = None
    present: str | None = None
    file: str | None = None
    key: str | None = None
    contains: tuple[object, ...] | None = None


@dataclass(frozen=True)
class ExpectedContents:
    """Contents of a model according to the catalog.

    Attributes:
        format: modelopt, compressed-tensors, bf16, ...; None if the catalog names none.
    """

    format: str | None = None
    checks: tuple[ContentCheck, ...] = ()


@dataclass(frozen=True)
class FetchRequest:
    """Request to fetch a repository at one commit, or an image at one digest.

    Attributes:
        endpoint: https://huggingface.co or another hub, or a registry; without a slash at its end.
        repo: org/name, or an image's path.
        revision: commit (40 hex digits), or an image's digest (64 hex digits).
        destination: directory that gets the files once all of them are verified.
        state_dir: directory that gets progress.json.
        files: at least one.
        downloader: hf_transfer, xet (the hub's Xet storage for the files that it has there,
            hf_transfer for the others) or http.
        max_connections: of the large files together. Two large files are fetched at once: where
            each connection is limited, more of them are faster. Memory is bounded by
            max_connections * chunk_size, since hf_transfer holds a whole chunk before it writes it.
        headroom: what must stay free on the file system.
        backoff: before the second try; it doubles with each further one.
        stall: without a byte after which a connection is given up.
        expect: expected content of the files, beyond their hashes.
        source: hub or registry. Every file of a registry is named by its sha256.
        manifests: digests of the files that a registry keeps as manifests.
        peers: http://address:port of the hosts to ask before the source, in this order.
        peer_token_file: PeerKeys, with a key for each of them.
        offline: whether only peers are asked.
        limit: bytes per second; None is no limit.
        adopt: glob patterns of directories on this host that may hold the same files.
    """

    endpoint: str
    repo: str
    revision: str
    destination: str
    state_dir: str
    files: tuple[FetchFile, ...] = ()
    downloader: str = "hf_transfer"
    max_connections: int = 32
    chunk_size: int = 8 << 20
    token_file: str | None = None
    allow_token_over_http: bool = False
    headroom: int = 2 << 30
    retries: int = 8
    backoff: float = 1.0
    stall: float = 60.0
    expect: ExpectedContents = ExpectedContents()
    source: str = "hub"
    manifests: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    peer_token_file: str | None = None
    offline: bool = False
    limit: float | None = None
    adopt: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuildFile:
    """A file of a build context; its content in base64."""

    content: str
    executable: bool = False


@dataclass(frozen=True)
class ImageBuild:
    """Build of an image over the pulled image.

    Attributes:
        base_name: name of the pulled image in the Dockerfile.
        files: the build context, by path.
        steps: whether the context has steps (steps.py), which make layer.tar of the base.
    """

    base_name: str
    files: dict[str, BuildFile]
    steps: bool = False


@dataclass(frozen=True)
class PullRequest:
    """Request to pull an image into Docker.

    Attributes:
        name: the resulting image's name.
        source: 127.0.0.1:<port>/<path>@sha256:<hex>, where the peer server has it.
        token_file: this host's key as a peer server, named by its run; Docker's password is made
            of it.
        layers: digests without sha256:, the lowest layer first.
        keep: whether the blobs stay on the disk for peers.
    """

    name: str
    source: str
    token_file: str
    layers: tuple[str, ...]
    fetch: FetchRequest
    keep: bool = False
    build: ImageBuild | None = None


@dataclass(frozen=True)
class PeerRoots:
    """The two directories that a peer server reads."""

    models: str
    images: str


@dataclass(frozen=True)
class PeerServerRequest:
    """A server that lets peers and this host's Docker read files, also while they are fetched.

    Attributes:
        keys: directory with its key of each run, in a file named by the run.
        idle: without a request by somebody with a key, after which the server ends.
        certificate: file with certificate and key, PEM, by which peers are served; None serves in
            clear. This host's own Docker asks in clear, on loopback.
    """

    keys: str
    roots: PeerRoots
    idle: float
    certificate: str | None = None


@dataclass(frozen=True)
class TlsIdentity:
    """How others verify a host.

    Attributes:
        name: what its certificate is for; None if it is for addresses alone.
        ca: by which CA, PEM; None if that is a public one.
    """

    name: str | None
    ca: str | None


@dataclass(frozen=True)
class PeerKeys:
    """Credentials with which a host fetches from its peers, in one run.

    Attributes:
        run: 32 hex digits.
        peer: this host's name, as peers know it.
        keys: by the peers' addresses, as in FetchRequest.
        tls: likewise, for peers that serve by TLS.
    """

    run: str
    peer: str
    keys: dict[str, str]
    tls: dict[str, TlsIdentity] = field(default_factory=dict)


Request = TypeVar("Request", FetchRequest, PullRequest, PeerServerRequest)
_COMMIT = r"[0-9a-f]{40}"
_SHA256 = r"[0-9a-f]{64}"
# Holes of a leftover part are exact only if every write ends on a page, and pages have up to
# 64 KiB on aarch64.
PAGE = 65536
_ABSOLUTE = r"(?s)(?!.*/\.\.(/|$))/.*"
_PATTERNS = {
    "endpoint": r"https?://[^/:\s]\S*(?<!/)",
    "source": "hub|registry",
    "destination": _ABSOLUTE,
    "state_dir": _ABSOLUTE,
    "downloader": "hf_transfer|xet|http",
}
#: The patterns that depend on the source.
_PINNED = {
    "hub": {"repo": r"(?a)[\w.-]+(/[\w.-]+)?", "revision": _COMMIT},
    "registry": {"repo": r"(?a)[\w.-]+(/[\w.-]+)*", "revision": _SHA256},
}


def document(request: object) -> str:
    """The text of a request's file."""
    return json.dumps(encode(request))


def read(cls: type[Request], path: Path) -> Request:
    """Read a request. Raises Failed with a message that names the key."""
    try:
        request = decode(cls, json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise Failed("request_unreadable", path=path, reason=error.strerror) from error
    except ValueError as error:
        raise Failed("request_invalid", path=path, reason=error) from error
    fetch = request.fetch if isinstance(request, PullRequest) else request
    if isinstance(fetch, FetchRequest):
        _check(fetch)
    return request


def _check(request: FetchRequest) -> None:
    for key, pattern in (_PATTERNS | _PINNED.get(request.source, {})).items():
        if not re.fullmatch(pattern, value := getattr(request, key)):
            raise Failed(f"request_{key}", value=value)
    for file in request.files:
        _validate(file)
    paths = {file.path for file in request.files}
    if len(paths) != len(request.files):
        raise Failed("file_twice")
    if both := {str(parent) for path in paths for parent in PurePosixPath(path).parents} & paths:
        raise Failed("file_and_directory", name=min(both))
    if not paths:
        raise Failed("request_empty")


def _validate(file: FetchFile) -> None:
    """Refuse a file that could not be verified or would be outside the directory."""
    name, path = file.path, PurePosixPath(file.path)
    faults = {
        "file_name": not name or "\0" in name or "\\" in name,
        "file_outside": path.is_absolute() or ".." in path.parts or str(path) != name,
        "file_receipt": path.parts[:1] == (receipt.NAME,),
        "file_size": file.size < 0,
        "file_sha256": file.sha256 is not None and not re.fullmatch(_SHA256, file.sha256),
        "file_blob_id": file.blob_id is not None and not re.fullmatch(_COMMIT, file.blob_id),
        "file_unverified": file.sha256 is None and file.blob_id is None,
    }
    for fault in (fault for fault, holds in faults.items() if holds):
        raise Failed(fault, name=name, size=file.size, sha256=file.sha256, blob_id=file.blob_id)
