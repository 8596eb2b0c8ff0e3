"""What the fetch program reads and writes: its requests and its progress. See also receipt.py.

All of them are JSON objects in files on hosts, with these keys. Sizes are in bytes, times in
seconds; hashes and commits are lower-case hex digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field


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


@dataclass(frozen=True)
class FetchProgress:
    """progress.json: how far a fetch or a pull is.

    Attributes:
        state: running, verifying, looking for earlier downloads, building, done or failed.
        bytes_done: on the disk, kept ones included.
        bytes_total: 0 while it is not known.
        bytes_kept: what was on the disk before this run.
        bytes_peers: what came from peers.
        rate: bytes per second over the last ten seconds.
        message: the result, once state is done or failed.
        updated: seconds since the epoch.
    """

    state: str = "running"
    bytes_done: int = 0
    bytes_total: int = 0
    bytes_kept: int = 0
    bytes_peers: int = 0
    rate: int = 0
    files_done: int = 0
    files_total: int = 0
    message: str = ""
    pid: int = 0
    updated: float = 0.0
