"""Write, read and check the fetch program's requests, which are JSON files.

A mistake raises Failed with one message that names the key.
"""

import json
import re
from pathlib import Path, PurePosixPath
from typing import TypeVar

from sparkwright.host.fetch.messages import Failed
from sparkwright.host.lib import receipt, records


@records.dataclass(frozen=True)
class FetchFile:
    """A file of a repository.

    Attributes:
        path: path within the repository, with slashes.
        sha256: hash of the content, for LFS files and blobs of images.
        blob_id: git's SHA-1 of the content, for all other files.
    """

    path: str
    size: int
    sha256: str | None = None
    blob_id: str | None = None


@records.dataclass(frozen=True)
class ContentCheck:
    """Check of a model's headers and small files, in one of three forms.

    Attributes:
        why: consequence for the user if the check fails.
        absent, present: prefix of tensor names that no tensor may have, or some tensor must have.
        file, key, contains: numbers or texts that the list under a key of a JSON file must contain.
    """

    id: str
    why: str
    absent: str | None = None
    present: str | None = None
    file: str | None = None
    key: str | None = None
    contains: tuple[object, ...] | None = None


@records.dataclass(frozen=True)
class ExpectedContents:
    """Contents of a model according to the catalog.

    Attributes:
        format: modelopt, compressed-tensors, bf16, ...; None if the catalog names no format.
    """

    format: str | None = None
    checks: tuple[ContentCheck, ...] = ()


@records.dataclass(frozen=True)
class FetchRequest:
    """Request to fetch a repository at one commit, or an image at one digest.

    Attributes:
        endpoint: https://huggingface.co or another hub, or a registry; without a slash at its end.
        repo: org/name, or an image's path.
        revision: commit (40 hex digits), or an image's digest (64 hex digits).
        destination: directory that gets the files once all files are verified.
        state_dir: directory that gets progress.json.
        files: the files to fetch, at least one.
        downloader: hf_transfer, xet (Xet for files in the hub's Xet storage, hf_transfer for all
            other files) or http.
        max_connections: connections of all large files together. Two large files are fetched at
            once. If the network limits each connection, more connections are faster. The product
            max_connections * chunk_size bounds the memory, since hf_transfer holds a whole chunk in
            memory.
        headroom: bytes that must stay free on the file system.
        backoff: seconds before the second try; the pause doubles with each further try.
        stall: seconds without a byte after which a connection is closed.
        expect: expected content of the files, beyond their hashes.
        source: hub or registry. Every file of a registry is named by its sha256.
        manifests: digests of files that a registry stores as manifests.
        peers: http://address:port of hosts to try before the source, in this order.
        peer_token_file: path of PeerKeys, with a key for each peer.
        offline: whether to fetch from peers only.
        limit: bytes per second; None for no limit.
        adopt: glob patterns of directories on this host that may have the same files.
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


@records.dataclass(frozen=True)
class BuildFile:
    """A file of a build context; ``content`` is in base64."""

    content: str
    executable: bool = False


@records.dataclass(frozen=True)
class ImageBuild:
    """Build of an image from the pulled image.

    Attributes:
        base_name: name of the pulled image in the Dockerfile.
        files: the build context, by path.
        steps: whether the context has steps (steps.py), which produce layer.tar from the base.
    """

    base_name: str
    files: dict[str, BuildFile]
    steps: bool = False


@records.dataclass(frozen=True)
class PullRequest:
    """Request to pull an image into Docker.

    Attributes:
        name: the resulting image's name.
        source: address at the peer server, 127.0.0.1:<port>/<path>@sha256:<hex>.
        token_file: file with this host's key as a peer server, named after its run; Docker's
            password is derived from the key.
        layers: digests without ``sha256:``, the lowest layer first.
        keep: whether to keep the blobs on the disk for peers.
    """

    name: str
    source: str
    token_file: str
    layers: tuple[str, ...]
    fetch: FetchRequest
    keep: bool = False
    build: ImageBuild | None = None


@records.dataclass(frozen=True)
class PeerServerRequest:
    """Request for a server from which peers and this host's Docker read files, even during their
    download.

    Attributes:
        keys: directory with the server's key of each run, in a file named after the run.
        models, images: the two directories from which the server reads.
        idle: seconds without an authenticated request after which the server ends.
        certificate: PEM file with certificate and key for connections of peers; None for plain
            HTTP. This host's own Docker uses plain HTTP on loopback.
    """

    keys: str
    models: str
    images: str
    idle: float
    certificate: str | None = None


@records.dataclass(frozen=True)
class TlsIdentity:
    """The TLS name and CA by which other programs verify a host.

    Attributes:
        name: host name in the certificate; None if it has addresses only.
        ca: CA certificate in PEM; None for a public CA.
    """

    name: str | None
    ca: str | None


@records.dataclass(frozen=True)
class PeerKeys:
    """A host's credentials for its peers in one run.

    Attributes:
        run: 32 hex digits.
        peer: this host's name among its peers.
        keys: keys by peer address, as in FetchRequest.
        tls: identities by peer address, for peers that serve TLS.
    """

    run: str
    peer: str
    keys: dict[str, str]
    tls: dict[str, TlsIdentity] = records.field(default_factory=dict)


Request = TypeVar("Request", FetchRequest, PullRequest, PeerServerRequest)
_COMMIT = r"[0-9a-f]{40}"
_SHA256 = r"[0-9a-f]{64}"
# Holes of a leftover part are exact only if every write ends on a page boundary; on aarch64 a page
# has up to 64 KiB.
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
    """Return the text of a request's file."""
    return json.dumps(records.encode(request))


def read(cls: type[Request], path: Path) -> Request:
    """Read a request. Raises Failed with a message that names the key."""
    try:
        request = records.decode(cls, json.loads(path.read_text(encoding="utf-8")))
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
    """Refuse a file that can't be verified, or whose path leads out of the directory."""
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
