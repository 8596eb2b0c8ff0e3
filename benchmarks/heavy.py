"""Add random bytes to hub and registry: the miniature repositories are too small to measure."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager

import requests

from lab.hub.store import Commit, Repository, Store, commit_id
from lab.layout import DEPOT, REGISTRY_PORT, STATE
from lab.serving.push import Registry

BODY = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"
IMAGE, TAG = "aeon-7/aeon-vllm-ultimate", "2026-08-17-v0.27.1-slim"
MEGABYTE = 1_000_000
_REGISTRY = f"http://{DEPOT.address}:{REGISTRY_PORT}"
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def weights(files: int, megabytes: int) -> None:
    """Add a commit to the body, with this many files of this many megabytes each."""
    store = Store(STATE / "depot" / "hub")
    data = store.load(BODY)
    assert data is not None
    last = data.commits[-1]
    listed = {file.path: file for file in last.files}
    for n in range(files):
        path = f"benchmark-{n + 1}.dat"
        listed[path] = store.add(path, _random(megabytes), lfs=True)
    entries = tuple(sorted(listed.values(), key=lambda file: file.path))
    title, date = "more bytes", last.date
    commit = Commit(commit_id(BODY, last.id, title, date, entries), title, date, entries)
    branches = {**data.branches, "main": commit.id}
    store.save(
        Repository(data.id, (*data.commits, commit), branches, data.tags, recipe=data.recipe)
    )


@contextmanager
def body(files: int, megabytes: int) -> Iterator[None]:
    """Add the heavy body to the hub while the block runs."""
    store = Store(STATE / "depot" / "hub")
    data = store.load(BODY)
    assert data is not None
    weights(files, megabytes)
    try:
        yield
    finally:
        store.save(data)


def image(megabytes: int) -> None:
    """Add a layer of random bytes to the tag, for this machine's architecture."""
    session = requests.Session()
    base = f"{_REGISTRY}/v2/{IMAGE}"
    accept = {"Accept": "application/vnd.oci.image.index.v1+json, "
              "application/vnd.docker.distribution.manifest.list.v2+json, "
              f"application/vnd.oci.image.manifest.v1+json, {_MANIFEST}"}  # fmt: skip
    data = session.get(f"{base}/manifests/{TAG}", headers=accept, timeout=30).json()
    if "manifests" in data:
        (child,) = (
            item for item in data["manifests"] if item["platform"]["architecture"] == "amd64"
        )
        manifest = session.get(
            f"{base}/manifests/{child['digest']}", headers=accept, timeout=30
        ).json()
    else:
        manifest = data
    config = session.get(f"{base}/blobs/{manifest['config']['digest']}", timeout=30).json()
    layer, diff = _layer(megabytes)
    config["rootfs"]["diff_ids"].append(diff)
    config.setdefault("history", []).append({"created_by": "benchmark"})
    registry = Registry(_REGISTRY, IMAGE)
    text = json.dumps(config).encode()
    for content in (layer, text):
        registry.put_blob(_digest(content), len(content), content)
    manifest["layers"].append(
        {**manifest["layers"][-1], "digest": _digest(layer), "size": len(layer)}
    )
    manifest["config"] = {**manifest["config"], "digest": _digest(text), "size": len(text)}
    registry.put_manifest(TAG, json.dumps(manifest).encode(), manifest.get("mediaType", _MANIFEST))
    registry.close()


def _layer(megabytes: int) -> tuple[bytes, str]:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("opt/benchmark.bin")
        entry.size = megabytes * MEGABYTE
        tar.addfile(entry, io.BytesIO(os.urandom(entry.size)))
    content = archive.getvalue()
    return gzip.compress(content, compresslevel=1, mtime=0), _digest(content)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _random(megabytes: int) -> Iterator[bytes]:
    for _ in range(megabytes):
        yield os.urandom(MEGABYTE)
