"""The image: two layers over the tree, its documents, and pushing them."""

import gzip
import tarfile
from collections.abc import Iterator
from pathlib import Path

from lab.real_engine.kind import Kind
from lab.serving.build import CREATED, Image, manifest_of, push
from lab.serving.image_documents import OCI, document
from lab.serving.layers import MTIME, Layer, described
from lab.serving.push import Registry


def pack(root: Path, below: str, target: Path) -> Layer:
    """Pack one part of a tree: everything below a folder, or, with "!", everything else."""
    wanted, folder = not below.startswith("!"), below.removeprefix("!")
    with (
        target.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=5, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for path in _paths(root):
            name = path.relative_to(root).as_posix()
            if (name == folder or name.startswith(f"{folder}/")) != wanted:
                continue
            entry = tar.gettarinfo(path, f"./{name}")
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = MTIME
            if entry.isreg():
                with path.open("rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)
    return described(target, target)


def image_of(kind: Kind, layers: list[Layer]) -> Image:
    """The documents: one index with one architecture."""
    config = document(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": CREATED,
            "config": {
                **kind.config,
                "Entrypoint": list(kind.tag.entrypoint),
                "Labels": {
                    "org.opencontainers.image.title": kind.title,
                    "org.opencontainers.image.version": kind.tag.version,
                },
            },
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
            "history": [
                {"created": CREATED, "created_by": "sparkwright lab", "comment": comment}
                for comment in kind.layers.values()
            ],
        },
        OCI["config"],
    )
    manifest = manifest_of(config, layers, OCI)
    entry = manifest.descriptor(platform={"architecture": "amd64", "os": "linux"})
    index = {"schemaVersion": 2, "mediaType": OCI["index"], "manifests": [entry]}
    return Image(document(index, OCI["index"]), [manifest], [config])


def push_to(address: str, kind: Kind, layers: list[Layer]) -> tuple[str, int]:
    """Push everything that the registry at `http://HOST:PORT` lacks; return digest and sent
    bytes.
    """
    image = image_of(kind, layers)
    registry = Registry(address, kind.tag.repository)
    try:
        return image.index.digest, push(registry, kind.tag, image, layers)
    finally:
        registry.close()


def _paths(root: Path) -> Iterator[Path]:
    """Everything in the tree, folders before their contents, in an order of its own."""
    for path in sorted(root.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _paths(path)
