"""An index with provenance: what of it is fetched, locked and pulled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.serving import build
from lab.serving.layers import file_layer
from lab.serving.tags import TAGS
from sparkwright.resolve import registry
from sparkwright.resolve.references import hex_digits


class _Answer:
    status_code, ok = 200, True

    def __init__(self, content: bytes) -> None:
        self.content, self.headers = content, {"WWW-Authenticate": ""}

    def json(self) -> Any:
        return json.loads(self.content)

    def raise_for_status(self) -> None:
        """It is well."""


def test_attestations_are_neither_fetched_nor_locked(tmp_path: Path) -> None:
    tag = next(one for one in TAGS if not one.docker_types and len(one.architectures) > 1)
    image = build.image_of(tag, [file_layer(build.identity_files(tag), tmp_path / "layer")])
    known = {one.digest: one.content for one in image.manifests}
    asked: list[str] = []

    class Session:
        def get(self, url: str, **_: Any) -> _Answer:
            asked.append(url.rpartition("/")[2])
            return _Answer(known[asked[-1]])

    index = json.loads(image.index.content)
    assert len(index["manifests"]) == 2 * len(tag.architectures)
    own = {image.index.digest: len(image.index.content)}
    found = registry._platforms(Session(), "http://registry/v2/me/vllm", index, own)  # type: ignore[arg-type]
    assert list(found) == list(tag.architectures)
    assert sorted(asked) == sorted(known)
    told = {one.manifest.digest for one in image.attestations}
    told |= {blob.digest for one in image.attestations for blob in one.blobs}
    for platform, manifest in zip(found.values(), image.manifests, strict=True):
        # By which hosts pull it: not by the index, of which they have not everything.
        assert platform.digest == manifest.digest
        assert not {hex_digits(digest) for digest in told} & set(platform.files)
