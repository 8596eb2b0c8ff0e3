"""The JSON documents of an image, with their digests."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

OCI = {
    "index": "application/vnd.oci.image.index.v1+json",
    "manifest": "application/vnd.oci.image.manifest.v1+json",
    "config": "application/vnd.oci.image.config.v1+json",
    "layer": "application/vnd.oci.image.layer.v1.tar+gzip",
}
DOCKER = {
    "index": "application/vnd.docker.distribution.manifest.list.v2+json",
    "manifest": "application/vnd.docker.distribution.manifest.v2+json",
    "config": "application/vnd.docker.container.image.v1+json",
    "layer": "application/vnd.docker.image.rootfs.diff.tar.gzip",
}


@dataclass(frozen=True)
class Document:
    """A JSON document of an image: its bytes and its media type."""

    content: bytes
    media_type: str

    @property
    def digest(self) -> str:
        """`sha256:...` of the bytes."""
        return "sha256:" + hashlib.sha256(self.content).hexdigest()

    def descriptor(self, **more: Any) -> dict[str, Any]:
        """Descriptor of this document in another document."""
        size = len(self.content)
        return {"mediaType": self.media_type, "digest": self.digest, "size": size, **more}


def document(value: dict[str, Any], media_type: str) -> Document:
    """A value as a document."""
    return Document(json.dumps(value, indent=2).encode(), media_type)
