"""Make the miniature repositories that the hub serves: `python -m lab.hub.repositories DIR`.

The repositories are fakes under the real names. The same call makes the same bytes and commit ids
on every machine, and a second call changes nothing. The module needs only the standard library.
"""

import argparse
import hashlib
import sys
from pathlib import Path

from . import (
    gemma4_body,
    other_drafters,
    qwen3_fp8,
    qwen27b_bodies,
    qwen35_gguf,
    qwen36_body,
    qwen36_drafter,
    stock_bodies,
    tiny,
    tiny_gguf,
    tiny_qwen3,
    whisper,
)
from .miniature import SMALL_FILES, Miniature, build
from .store import Repository, Store

# To add a repository, write a module like qwen36_drafter and name its MINIATURE here.
MINIATURES: tuple[Miniature, ...] = (
    qwen36_body.MINIATURE,
    qwen36_drafter.MINIATURE,
    *qwen27b_bodies.MINIATURES,
    *stock_bodies.MINIATURES,
    qwen3_fp8.MINIATURE,
    gemma4_body.MINIATURE,
    *other_drafters.MINIATURES,
    *tiny.MINIATURES,
    *tiny_qwen3.MINIATURES,
    *tiny_gguf.MINIATURES,
    *qwen35_gguf.MINIATURES,
    whisper.MINIATURE,
)


def make(directory: Path, scale: float = 1.0) -> list[Repository]:
    """Make all repositories under `directory`; tensors are `scale` times their usual size."""
    store = Store(directory)
    recipe = _recipe(scale)
    made = []
    for miniature in MINIATURES:
        data = store.load(miniature.id)
        if data is None or data.recipe != recipe or not store.complete(data):
            data = build(miniature, store, scale, recipe)
        made.append(data)
    return made


def _recipe(scale: float) -> str:
    """Name the sources of the repositories: this folder's files and the scale."""
    digest = hashlib.sha256(f"{scale}".encode())
    sources = [*Path(__file__).parent.glob("*.py"), *SMALL_FILES.rglob("*.*")]
    for source in sorted(sources):
        digest.update(source.read_bytes() if source.is_file() else b"")
    return digest.hexdigest()


def main(arguments: list[str] | None = None) -> int:
    """Make the repositories and print one line for each: id, commit, files, bytes."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.hub.repositories", description="Make the lab's fake repositories."
    )
    parser.add_argument("directory", type=Path, help="data directory of the hub")
    options = parser.parse_args(arguments)
    try:
        made = make(options.directory)
    except OSError as error:
        print(f"cannot write {options.directory}: {error.strerror or error}", file=sys.stderr)
        return 1
    for repository in made:
        newest = repository.commits[-1]
        size = sum(file.size for file in newest.files)
        print(f"{repository.id} {newest.id} {len(newest.files)} files {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
