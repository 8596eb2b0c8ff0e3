"""Writes, reads and checks the requests of the program: JSON files with contracts/fetch.py's keys.

Every mistake is one message that names the key. A key that the type does not have is a mistake
too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import urlsplit

from sparkwright.host.contracts.fetch import (
    FetchFile,
    FetchRequest,
    PeerServerRequest,
    PullRequest,
)
from sparkwright.host.contracts.records import Malformed, decode, encode
from sparkwright.host.fetch.errors import Failed
from sparkwright.host.lib import receipt

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
