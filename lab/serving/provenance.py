"""Provenance beside an image's manifests, in the form in which docker buildx stores it.

(https://docs.docker.com/build/metadata/attestations/attestation-storage/)
"""

from dataclasses import dataclass
from typing import Any

from .image_documents import OCI, Document, document

_STATEMENT = "application/vnd.in-toto+json"
_PREDICATE = "https://slsa.dev/provenance/v1"


@dataclass(frozen=True)
class Attestation:
    """Attestation of a manifest: a second manifest, its blobs, and its entry in an index."""

    manifest: Document
    blobs: tuple[Document, ...]
    entry: dict[str, Any]


def of(subject: Document) -> Attestation:
    """Make the provenance of a manifest."""
    statement = document(
        {
            "_type": "https://in-toto.io/Statement/v0.1",
            "predicateType": _PREDICATE,
            "subject": [{"digest": {"sha256": subject.digest.partition(":")[2]}}],
            "predicate": {"buildDefinition": {"buildType": "a fake of the lab's"}},
        },
        _STATEMENT,
    )
    config = document(
        {"architecture": "unknown", "os": "unknown", "config": {},
         "rootfs": {"type": "layers", "diff_ids": [statement.digest]}},
        OCI["config"],
    )  # fmt: skip
    annotations = {"in-toto.io/predicate-type": _PREDICATE}
    manifest = document(
        {
            "schemaVersion": 2,
            "mediaType": OCI["manifest"],
            "config": config.descriptor(),
            "layers": [statement.descriptor(annotations=annotations)],
        },
        OCI["manifest"],
    )
    entry = manifest.descriptor(
        platform={"architecture": "unknown", "os": "unknown"},
        annotations={
            "vnd.docker.reference.digest": subject.digest,
            "vnd.docker.reference.type": "attestation-manifest",
        },
    )
    return Attestation(manifest, (config, statement), entry)
