"""The request: what one run of the program shall fetch, read from a JSON file.

Shape (all sizes in bytes, all times in seconds; keys with a default may be left out):

    {"endpoint": "https://huggingface.co", "repo": "org/name", "revision": "<40 hex>",
     "destination": "/opt/models/org--name/<40 hex>",
     "state_dir": "/var/lib/sparkwright/jobs/<name>",
     "files": [{"path": "model.safetensors", "size": 1, "sha256": "<64 hex>" or null,
                "blob_id": "<40 hex>" or null}] or null (then the hub is asked),
     "owner": "root:root", "file_mode": "0644", "directory_mode": "0755",
     "mover": "hf_transfer", "xet" (the hub's Xet storage, for the files that it has there;
              hf_transfer for the others) or "http",
     "max_connections": 32, "chunk_size": 8388608,
     "token_file": null or path, "allow_token_over_http": false,
     "headroom": 2147483648, "retries": 8, "backoff": 1.0, "stall": 60.0,
     "expect": null, or what contents.py reads,
     "source": "hub" or "registry" (then `repo` is an image's path, `revision` its digest's 64 hex
               digits, every file is named by its sha256, and `manifests` names those of them
               that a registry keeps as manifests),
     "peers": ["http://10.0.0.5:18650", ...] (asked before the source, in this order),
     "peer_token_file": null or path, "offline": false (true: nobody but peers is asked),
     "limit": null or bytes per second, "adopt": ["/models", ...] (globs of directories that may
               hold the same files)}
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from sparkwright.host.fetch.errors import Failed
from sparkwright.host.lib import receipt

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REPO = {
    "hub": re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII),
    "registry": re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII),
}
# Holes of a leftover part are exact only where every write ends on a page, and pages have up
# to 64 KiB on aarch64.
PAGE = 65536


@dataclass(frozen=True)
class File:
    """A file of the repository. LFS files have a sha256, all others git's blob_id (sha1)."""

    path: str
    size: int
    sha256: str | None
    blob_id: str | None


@dataclass(frozen=True)
class Request:
    """One repository at one commit, and how to get it."""

    endpoint: str
    repo: str
    revision: str
    destination: Path
    state_dir: Path
    files: tuple[File, ...] | None = None
    owner: str | None = None
    file_mode: int = 0o644
    directory_mode: int = 0o755
    mover: str = "hf_transfer"
    # Two large files at once with 16 connections each: where every connection is limited, more
    # ranges win. Memory is bounded by connections * chunk_size, 256 MiB (hf_transfer holds a
    # whole chunk before it writes it).
    max_connections: int = 32
    chunk_size: int = 8 << 20
    token_file: Path | None = None
    allow_token_over_http: bool = False
    headroom: int = 2 << 30
    retries: int = 8
    backoff: float = 1.0
    stall: float = 60.0
    expect: dict[str, Any] | None = None
    source: str = "hub"
    manifests: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    peer_token_file: Path | None = None
    offline: bool = False
    limit: float | None = None
    adopt: tuple[str, ...] = ()


def read(path: Path) -> Request:
    """Read a request. Raises Failed with a message that names the key."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failed(f"Cannot read the request {path}: {error.strerror}.") from error
    except ValueError as error:
        raise Failed(f"The request {path} is no JSON: {error}.") from error
    if not isinstance(document, dict):
        raise Failed(f"The request {path} must be a JSON object.")
    return parse(document)


def parse(document: dict[str, Any]) -> Request:
    """Turn the JSON object into a Request. Raises Failed with a message that names the key."""
    unknown = sorted(set(document) - {field.name for field in fields(Request)})
    if unknown:
        raise Failed(f"The request has an unknown key: {', '.join(unknown)}.")
    values = dict(document)
    endpoint = _text(values, "endpoint").rstrip("/")
    if urlsplit(endpoint).scheme not in {"http", "https"} or not urlsplit(endpoint).hostname:
        raise Failed(f"The request's endpoint is no http(s) address: {endpoint!r}.")
    values["endpoint"] = endpoint
    source = values.get("source", "hub")
    if source not in _REPO:
        raise Failed(f"The request's source must be hub or registry: {source!r}.")
    if not _REPO[source].fullmatch(_text(values, "repo")):
        raise Failed(f"The request's repo must read org/name: {values['repo']!r}.")
    pinned = _COMMIT if source == "hub" else _SHA256
    if not pinned.fullmatch(_text(values, "revision")):
        raise Failed(
            f"The request's revision must be a full commit (40 hex digits): "
            f"{values['revision']!r}. A branch or tag can move; lock it first."
        )
    for key in ("destination", "state_dir"):
        values[key] = Path(_text(values, key))
        if not values[key].is_absolute() or ".." in values[key].parts:
            raise Failed(f"The request's {key} must be an absolute path: {values[key]}.")
    for key in ("token_file", "peer_token_file"):
        if values.get(key) is not None:
            values[key] = Path(_text(values, key))
    for key in ("peers", "adopt", "manifests"):
        listed = values.get(key) or []
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise Failed(f"The request's {key} must be a list of texts: {listed!r}.")
        values[key] = tuple(listed)
    for key in ("file_mode", "directory_mode"):
        if key in values:
            values[key] = _mode(values, key)
    if values.get("mover", "http") not in {"hf_transfer", "xet", "http"}:
        raise Failed(f"The request's mover must be hf_transfer, xet or http: {values['mover']!r}.")
    for key, least in (
        ("max_connections", 1), ("chunk_size", PAGE), ("headroom", 0), ("retries", 0),
        ("backoff", 0), ("stall", 0.1), ("limit", PAGE),
    ):  # fmt: skip
        number = values.get(key, least)
        if key == "limit" and number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, (int, float)) or number < least:
            raise Failed(f"The request's {key} must be a number of at least {least}: {number!r}.")
    if values.get("chunk_size", PAGE) % PAGE:
        raise Failed(f"The request's chunk_size must be a multiple of {PAGE}.")
    if not isinstance(values.get("expect") or {}, dict):
        raise Failed(f"The request's expect must be an object: {values['expect']!r}.")
    if values.get("files") is not None:
        values["files"] = _files(values["files"])
    elif source == "registry" or values.get("offline"):
        raise Failed("The request needs files: a list that nobody is asked for.")
    return Request(**values)


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not value:
        raise Failed(f"The request needs {key} as a text.")
    return value


def _mode(values: dict[str, Any], key: str) -> int:
    text = _text(values, key)
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise Failed(f"The request's {key} must be an octal mode such as 0644: {text!r}.")
    return int(text, 8)


def _files(listed: Any) -> tuple[File, ...]:
    if not isinstance(listed, list) or not listed:
        raise Failed("The request's files must be a list with at least one file, or null.")
    files = []
    for entry in listed:
        if not isinstance(entry, dict):
            raise Failed(f"The request's files hold {entry!r}, which is no object.")
        extra = sorted(set(entry) - {"path", "size", "sha256", "blob_id"})
        if extra:
            raise Failed(f"The request's files have an unknown key: {', '.join(extra)}.")
        file = File(
            entry.get("path", ""), entry.get("size", -1), entry.get("sha256"), entry.get("blob_id")
        )
        validate(file)
        files.append(file)
    unique(files)
    return tuple(files)


def validate(file: File) -> None:
    """Refuse a file that could not be verified or would leave the directory."""
    name = file.path
    if not isinstance(name, str) or not name or "\0" in name or "\\" in name:
        raise Failed(f"A file of the repository has the impossible name {name!r}.")
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or PurePosixPath(name).as_posix() != name:
        raise Failed(f"The file {name!r} would leave the model directory: refused.")
    if parts[0] == receipt.NAME:
        raise Failed(f"The repository has a file {name}, the name of the receipt: refused.")
    if isinstance(file.size, bool) or not isinstance(file.size, int) or file.size < 0:
        raise Failed(f"The size of {name} is unknown: {file.size!r}.")
    sha256, blob_id = file.sha256, file.blob_id
    if sha256 is not None and not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
        raise Failed(f"The sha256 of {name} is none: {sha256!r}.")
    if blob_id is not None and not (isinstance(blob_id, str) and _COMMIT.fullmatch(blob_id)):
        raise Failed(f"The blob_id of {name} is none: {blob_id!r}.")
    if sha256 is None and blob_id is None:
        raise Failed(f"{name} has neither a sha256 nor a blob_id, so it could not be verified.")


def unique(files: list[File]) -> None:
    """Refuse a list that names a path twice, or a file as a directory too."""
    paths = {file.path for file in files}
    if len(paths) != len(files):
        raise Failed("A file is listed twice.")
    for path in paths:
        for parent in PurePosixPath(path).parents:
            if parent.as_posix() in paths:
                raise Failed(f"{parent} is listed as a file and as a directory.")
