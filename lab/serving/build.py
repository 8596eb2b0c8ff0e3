"""Make the fake serving images and push them to a registry, without a Docker engine.

    python -m lab.serving.build --registry http://HOST:5000 --cache DIR

An image is three layers: Debian's Python and a shell, the fake with its tables, and the small files
that name vLLM's version, flavour and any fault. The image's index has one entry per architecture,
all with the same x86_64 files: the arm64 entry makes the index look like the real image's index. An
index of OCI's types has provenance for each entry, as docker buildx adds it by default.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import provenance
from .image_documents import DOCKER, OCI, Document, document
from .layers import Layer, base_layer, file_layer
from .push import Registry
from .tags import TAGS, ULTIMATE, Tag

HERE = Path(__file__).resolve().parent
INSTALLED = "opt/fake-vllm"
CREATED = "2026-01-01T00:00:00Z"

LAUNCHER = f"""#!/usr/bin/python3
import sys

sys.path.insert(0, "/{INSTALLED}")
from fake_vllm.MODULE import main

sys.exit(main(sys.argv[1:]))
"""

#: Python's packages in the image, by which SGLang is started: `python3 -m sglang.launch_server`.
PACKAGES = "usr/lib/python3/dist-packages"
UVICORN = f"""\
import sys

sys.path.insert(0, "/{INSTALLED}")
from fake_vllm.asgi import Config, Server

if __name__ == "__main__":
    from fake_vllm.open_webui import main

    sys.exit(main(sys.argv[1:]))
"""
#: Folders with tables of arguments, as the engines themselves printed them.
ENGINES = HERE.parent.parent / "sparkwright/engines"


@dataclass(frozen=True)
class Image:
    """The documents of one tag: an index over manifests over configs, and over attestations."""

    index: Document
    manifests: list[Document]
    configs: list[Document]
    attestations: list[provenance.Attestation] = field(default_factory=list)


def _launcher(module: str) -> bytes:
    return LAUNCHER.replace("MODULE", module).encode()


def fake_files() -> dict[str, tuple[bytes, int]]:
    """The files of the fake's layer, by path in the image, with their modes."""
    files: dict[str, tuple[bytes, int]] = {
        "usr/local/bin/vllm": (_launcher("command"), 0o755),
        "usr/local/bin/dflash-entrypoint.sh": (_launcher("from_environment"), 0o755),
        "app/llama-server": (_launcher("llama_server"), 0o755),
        f"{PACKAGES}/uvicorn.py": (UVICORN.encode(), 0o644),
        f"{PACKAGES}/sglang/__init__.py": (b"", 0o644),
        f"{PACKAGES}/sglang/launch_server.py": (_launcher("sglang"), 0o644),
        "app/backend/fake": (b"a fake for Open WebUI\n", 0o644),
        "etc/passwd": (b"root:x:0:0:root:/root:/bin/bash\n", 0o644),
        "etc/group": (b"root:x:0:\n", 0o644),
    }
    for pattern in ("fake_vllm/*.py", "flags/*.json", "metrics/*.json"):
        for path in HERE.glob(pattern):
            name = path.relative_to(HERE).as_posix()
            files[f"{INSTALLED}/{name}"] = (path.read_bytes(), 0o644)
    for engine in ("sglang", "llamacpp"):
        for path in (ENGINES / engine / "tables").glob("*.json"):
            files[f"{INSTALLED}/{engine}/{path.name}"] = (path.read_bytes(), 0o644)
    return files


def identity_files(tag: Tag) -> dict[str, tuple[bytes, int]]:
    """The files of a tag's own layer."""
    files = {
        "etc/fake-vllm-version": (f"{tag.version}\n".encode(), 0o644),
        "etc/fake-vllm-flavour": (f"{tag.flavour}\n".encode(), 0o644),
    }
    if tag.fault:
        files["etc/fake-vllm-fault"] = (f"{tag.fault}\n".encode(), 0o644)
    return files


def image_of(tag: Tag, layers: list[Layer]) -> Image:
    """The documents of a tag over its layers."""
    types = DOCKER if tag.docker_types else OCI
    configs = [_config(tag, layers, name, types) for name in tag.architectures]
    manifests = [manifest_of(config, layers, types) for config in configs]
    entries = [
        manifest.descriptor(platform={"architecture": name, "os": "linux"})
        for manifest, name in zip(manifests, tag.architectures, strict=True)
    ]
    if not tag.docker_types:
        for entry, name in zip(entries, tag.architectures, strict=True):
            entry["annotations"] = {"dev.sparkwright.fake": _note(name)}
    attestations = [] if tag.docker_types else [provenance.of(manifest) for manifest in manifests]
    entries += [attestation.entry for attestation in attestations]
    index: dict[str, Any] = {"schemaVersion": 2, "mediaType": types["index"]}
    index["manifests"] = entries
    if not tag.docker_types:
        index["annotations"] = {"dev.sparkwright.fake": "a fake for vLLM, without a model"}
    return Image(document(index, types["index"]), manifests, configs, attestations)


def push(registry: Registry, tag: Tag, image: Image, layers: list[Layer]) -> int:
    """Push the missing parts of a tag; return the sent bytes, 0 if no part was missing."""
    missing = [
        name
        for name in tag.names
        if not registry.has_manifest(name, image.index.digest, image.index.media_type)
    ]
    if not missing:
        return 0
    sent = 0
    for layer in layers:
        if registry.put_blob(layer.digest, layer.size, Path(layer.path), mount_from=ULTIMATE):
            sent += layer.size
    for blob in (
        *image.configs,
        *(blob for attestation in image.attestations for blob in attestation.blobs),
    ):
        if registry.put_blob(blob.digest, len(blob.content), blob.content):
            sent += len(blob.content)
    for manifest in (
        *image.manifests,
        *(attestation.manifest for attestation in image.attestations),
    ):
        registry.put_manifest(manifest.digest, manifest.content, manifest.media_type)
        sent += len(manifest.content)
    for name in missing:
        registry.put_manifest(name, image.index.content, image.index.media_type)
        sent += len(image.index.content)
    return sent


def main(parts: list[str]) -> int:
    """Run the command, which prints one line per tag: name, digest, and sent bytes."""
    parser = argparse.ArgumentParser(prog="python -m lab.serving.build", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--registry", help="http://HOST:PORT; default: only build the base")
    parser.add_argument("--cache", required=True, type=Path, help="folder of the base layer")
    arguments = parser.parse_args(parts)
    base = base_layer(arguments.cache)
    if not arguments.registry:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        fake = file_layer(fake_files(), Path(folder) / "fake")
        for number, tag in enumerate(TAGS):
            own = file_layer(identity_files(tag), Path(folder) / f"tag-{number}")
            layers = [base, fake, own]
            image = image_of(tag, layers)
            registry = Registry(arguments.registry, tag.repository)
            try:
                sent = push(registry, tag, image, layers)
            finally:
                registry.close()
            names = ",".join(tag.names)
            print(f"{tag.repository}:{names} {image.index.digest} sent {sent} bytes", flush=True)
    return 0


def _config(tag: Tag, layers: list[Layer], architecture: str, types: dict[str, str]) -> Document:
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    labels = {
        "dev.sparkwright.fake": _note(architecture),
        "dev.sparkwright.fake.fault": tag.fault or "none",
        # With a label, two tags of the same fake are two images, like the real images.
        "dev.sparkwright.fake.for": f"{tag.repository}:{tag.names[0]}",
        "org.opencontainers.image.title": f"fake for {tag.repository}",
        "org.opencontainers.image.version": f"{tag.version}+fake",
    }
    config = {
        "architecture": architecture,
        "os": "linux",
        "created": CREATED,
        "config": {
            "Env": [path, "LANG=C.UTF-8", "NVIDIA_VISIBLE_DEVICES=all", *tag.environment],
            "Entrypoint": list(tag.entrypoint),
            "Cmd": ["/bin/bash"] if tag.entrypoint == ("/bin/bash",) else [],
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [
            {"created": CREATED, "created_by": "sparkwright lab", "comment": comment}
            for comment in ("Debian's Python and bash", "fake vLLM", "which vLLM it stands for")
        ],
    }
    return document(config, types["config"])


def manifest_of(config: Document, layers: list[Layer], types: dict[str, str]) -> Document:
    """The manifest of one architecture."""
    manifest = {
        "schemaVersion": 2,
        "mediaType": types["manifest"],
        "config": config.descriptor(),
        "layers": [
            {"mediaType": types["layer"], "digest": layer.digest, "size": layer.size}
            for layer in layers
        ],
    }
    return document(manifest, types["manifest"])


def _note(architecture: str) -> str:
    if architecture == "amd64":
        return "a fake for vLLM, without a model"
    return f"a fake entry for {architecture}: its files are those of amd64"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
