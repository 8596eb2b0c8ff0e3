"""An index with provenance: fetched, locked and pulled parts."""

import json
from pathlib import Path

from lab.serving import build
from lab.serving.layers import file_layer
from lab.serving.tags import TAGS
from sparkwright.resolve import registry
from sparkwright.resolve.references import hex_digits


def test_attestations_are_neither_fetched_nor_locked(tmp_path: Path) -> None:
    tag = next(tag for tag in TAGS if not tag.docker_types and len(tag.architectures) > 1)
    image = build.image_of(tag, [file_layer(build.identity_files(tag), tmp_path / "layer")])
    expected = {manifest.digest: manifest.content for manifest in image.manifests}
    asked: list[str] = []

    class Repository:
        def exact(self, _kind: str, digest: str) -> bytes:
            asked.append(digest)
            return expected[digest]

    index = json.loads(image.index.content)
    assert len(index["manifests"]) == 2 * len(tag.architectures)
    own = {image.index.digest: len(image.index.content)}
    result = registry._platforms(Repository(), index, own)  # type: ignore[arg-type]
    assert list(result) == list(tag.architectures)
    assert sorted(asked) == sorted(expected)
    digests = {attestation.manifest.digest for attestation in image.attestations}
    digests |= {blob.digest for attestation in image.attestations for blob in attestation.blobs}
    for platform, manifest in zip(result.values(), image.manifests, strict=True):
        # Hosts pull by the platform's manifest, since they have only a part of the index.
        assert platform.digest == manifest.digest
        assert not {hex_digits(digest) for digest in digests} & set(platform.files)
