"""Tiny repositories for tests of access, tags and long listings. The repositories follow no real
model."""

from functools import partial

from .miniature import Files, Miniature, Revision
from .weights import Tensor, safetensors

NOTES = 60


def _files(_size: int, *, repository: str, version: str) -> Files:
    tensors = [Tensor("model.weight", "BF16", (64, 64), seed=f"{repository}:{version}")]
    files: Files = {
        "model.safetensors": partial(safetensors, tensors),
    }
    for number in range(NOTES):
        files[f"notes/{number:02d}.txt"] = f"Note {number}.\n".encode()
    return files


def _miniature(repository: str, *, private: bool = False, gated: bool = False) -> Miniature:
    return Miniature(
        repository,
        size=0,
        revisions=(
            Revision(
                "First",
                "2026-05-01T08:00:00.000Z",
                partial(_files, repository=repository, version="1"),
                tag="v1.0",
            ),
            Revision(
                "Second",
                "2026-05-02T08:00:00.000Z",
                partial(_files, repository=repository, version="2"),
            ),
        ),
        private=private,
        gated=gated,
    )


MINIATURES = (
    _miniature("lab/open-tiny"),
    _miniature("lab/private-tiny", private=True),
    _miniature("lab/gated-tiny", gated=True),
)
