"""Writes, reads and checks the requests of the program: JSON files with contracts/fetch.py's keys.

Every mistake is one message that names the key. A key that the type does not have is a mistake
too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import urlsplit

from sparkwright.host.fetch.errors import Failed
from sparkwright.host.lib import receipt
from sparkwright.host.lib.records import Malformed, decode, encode


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
    """What headers and small files of a model must show; one of the three ways.

    Attributes:
        why: what a failure means for the user.
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
    """What the catalog says of a model.

    Attributes:
        format: modelopt, compressed-tensors, bf16, ...; None where the catalog names none.
    """

    format: str | None = None
    checks: tuple[ContentCheck, ...] = ()


@dataclass(frozen=True)
class FetchRequest:
    """One repository at one commit, or one image at one digest, and how to fetch it.

    Attributes:
        endpoint: https://huggingface.co or another hub, or a registry.
        repo: org/name, or an image's path.
        revision: commit (40 hex digits), or an image's digest (64 hex digits).
        destination: directory that gets the files once all of them are verified.
        state_dir: directory that gets progress.json.
        files: at least one.
        owner: user or user:group.
        downloader: hf_transfer, xet (the hub's Xet storage for the files that it has there,
            hf_transfer for the others) or http.
        max_connections: of the large files together. Two large files are fetched at once: where
            each connection is limited, more of them are faster. Memory is bounded by
            max_connections * chunk_size, since hf_transfer holds a whole chunk before it writes it.
        headroom: what must stay free on the file system.
        backoff: before the second try; it doubles with each further one.
        stall: without a byte after which a connection is given up.
        expect: what the files are checked against, beyond their hashes.
        source: hub or registry. Every file of a registry is named by its sha256.
        manifests: those of the files that a registry keeps as manifests.
        peers: http://address:port of the hosts to ask before the source, in this order.
        peer_token_file: PeerKeys, with a key for each of them.
        offline: ask nobody but peers.
        limit: bytes per second; None is no limit.
        adopt: glob patterns of directories on this host that may hold the same files.
    """

    endpoint: str
    repo: str
    revision: str
    destination: str
    state_dir: str
    files: tuple[FetchFile, ...] = ()
    owner: str | None = None
    downloader: str = "hf_transfer"
    max_connections: int = 32
    chunk_size: int = 8 << 20
    token_file: str | None = None
    allow_token_over_http: bool = False
    headroom: int = 2 << 30
    retries: int = 8
    backoff: float = 1.0
    stall: float = 60.0
    expect: ExpectedContents | None = None
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
    """How an image is built over the one that is pulled.

    Attributes:
        base_name: what the pulled image is called for the Dockerfile.
        files: the build context, by path.
    """

    base_name: str
    files: dict[str, BuildFile]


@dataclass(frozen=True)
class PullRequest:
    """One image to get into Docker.

    Attributes:
        name: what the image is called afterwards.
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
        addresses: to listen on at the port; none where systemd passes listening sockets.
        certificate: file with certificate and key, PEM, by which peers are served; None serves in
            clear. This host's own Docker asks in clear, on loopback.
    """

    port: int
    keys: str
    roots: PeerRoots
    idle: float
    addresses: tuple[str, ...] = ()
    certificate: str | None = None


@dataclass(frozen=True)
class TlsIdentity:
    """How others verify a host.

    Attributes:
        name: what its certificate is for; None where it is for addresses alone.
        ca: by which CA, PEM; None where that is a public one.
    """

    name: str | None
    ca: str | None


@dataclass(frozen=True)
class PeerKeys:
    """What a host needs to take from its peers, in one run.

    Attributes:
        run: 32 hex digits.
        peer: this host's name, as peers know it.
        keys: by the peers' addresses, as in FetchRequest.
        tls: likewise, of those that serve by TLS.
    """

    run: str
    peer: str
    keys: dict[str, str]
    tls: dict[str, TlsIdentity] = field(default_factory=dict)


_Record = TypeVar("_Record")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REPO = {
    "hub": re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII),
    "registry": re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII),
}
_DOWNLOADERS = ("hf_transfer", "xet", "http")
# Holes of a leftover part are exact only if every write ends on a page, and pages have up to
# 64 KiB on aarch64.
PAGE = 65536
_LEAST = {
    **{"max_connections": 1, "chunk_size": PAGE, "headroom": 0, "retries": 0},
    **{"backoff": 0, "stall": 0.1, "limit": PAGE},
}


def document(request: FetchRequest | PullRequest | PeerServerRequest) -> str:
    """The text of a request's file."""
    return json.dumps(encode(request))


def read_fetch(path: Path) -> FetchRequest:
    """Read the request of a fetch. Raises Failed with a message that names the key."""
    return _checked(_record(FetchRequest, _object(path)))


def read_pull(path: Path) -> PullRequest:
    """Read the request of a pull. Raises Failed with a message that names the key."""
    request = _record(PullRequest, _object(path))
    return replace(request, fetch=_checked(request.fetch))


def read_peer_server(path: Path) -> PeerServerRequest:
    """Read the request of a peer server. Raises Failed with a message that names the key."""
    return _record(PeerServerRequest, _object(path))


def _object(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failed(f"Cannot read the request {path}: {error.strerror}.") from error
    except ValueError as error:
        raise Failed(f"The request {path} is not valid JSON: {error}.") from error
    if not isinstance(data, dict):
        raise Failed(f"The request {path} must be a JSON object.")
    return data


def _record(cls: type[_Record], data: dict[str, Any]) -> _Record:
    """Decode a request; what it encodes to has every key that it may have."""
    try:
        request = decode(cls, data)
    except Malformed as error:
        raise Failed(f"The request is not valid: {error}.") from error
    unknown = sorted(_unknown(data, encode(request)))
    if unknown:
        raise Failed(f"The request has an unknown key: {', '.join(unknown)}.")
    return request


def _unknown(data: Any, known: Any) -> Iterator[str]:
    if isinstance(data, dict) and isinstance(known, dict):
        yield from data.keys() - known.keys()
        for key in data.keys() & known.keys():
            yield from _unknown(data[key], known[key])
    elif isinstance(data, list) and isinstance(known, list):
        for item, record in zip(data, known, strict=True):
            yield from _unknown(item, record)


def _checked(request: FetchRequest) -> FetchRequest:
    """Check a fetch's request. Raises Failed with a message that names the key."""
    endpoint = request.endpoint.rstrip("/")
    if urlsplit(endpoint).scheme not in {"http", "https"} or not urlsplit(endpoint).hostname:
        raise Failed(f"The request's endpoint is not a valid http(s) address: {endpoint!r}.")
    if request.source not in _REPO:
        raise Failed(f"The request's source must be hub or registry: {request.source!r}.")
    if not _REPO[request.source].fullmatch(request.repo):
        raise Failed(f"The request's repo must be org/name: {request.repo!r}.")
    pinned = _COMMIT if request.source == "hub" else _SHA256
    if not pinned.fullmatch(request.revision):
        raise Failed(
            f"The request's revision must be a full commit (40 hex digits), or an image's digest "
            f"(64 hex digits): {request.revision!r}. A branch or tag can move; lock it first."
        )
    for key in ("destination", "state_dir"):
        place = Path(getattr(request, key))
        if not place.is_absolute() or ".." in place.parts:
            raise Failed(f"The request's {key} must be an absolute path: {place}.")
    if request.downloader not in _DOWNLOADERS:
        raise Failed(
            f"The request's downloader must be hf_transfer, xet or http: {request.downloader!r}."
        )
    for key, least in _LEAST.items():
        number = getattr(request, key)
        if number is not None and number < least:
            raise Failed(f"The request's {key} must be at least {least}: {number!r}.")
    if request.chunk_size % PAGE:
        raise Failed(f"The request's chunk_size must be a multiple of {PAGE}.")
    for file in request.files:
        _validate(file)
    _unique(request.files)
    if not request.files:
        raise Failed("The request's files must have at least one file.")
    return replace(request, endpoint=endpoint)


def _validate(file: FetchFile) -> None:
    """Refuse a file that could not be verified or would be outside the directory."""
    name = file.path
    if not name or "\0" in name or "\\" in name:
        raise Failed(f"A file of the repository has the invalid name {name!r}.")
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or PurePosixPath(name).as_posix() != name:
        raise Failed(f"The file {name!r} would be outside the model directory: refused.")
    if parts[0] == receipt.NAME:
        raise Failed(f"The repository has a file {name}, the name of the receipt: refused.")
    if file.size < 0:
        raise Failed(f"The size of {name} is not valid: {file.size!r}.")
    if file.sha256 is not None and not _SHA256.fullmatch(file.sha256):
        raise Failed(f"The sha256 of {name} is not valid: {file.sha256!r}.")
    if file.blob_id is not None and not _COMMIT.fullmatch(file.blob_id):
        raise Failed(f"The blob_id of {name} is not valid: {file.blob_id!r}.")
    if file.sha256 is None and file.blob_id is None:
        raise Failed(f"{name} has neither a sha256 nor a blob_id, so it could not be verified.")


def _unique(files: Sequence[FetchFile]) -> None:
    """Refuse a list that has a path twice, or a file that is a directory too."""
    paths = {file.path for file in files}
    if len(paths) != len(files):
        raise Failed("A file is listed twice.")
    for path in paths:
        for parent in PurePosixPath(path).parents:
            if parent.as_posix() in paths:
                raise Failed(f"{parent} is listed as a file and as a directory.")
