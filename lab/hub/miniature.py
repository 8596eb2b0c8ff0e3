"""What a miniature repository is: a name, and revisions that each make their files anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .store import Commit, File, Repository, Store, commit_id

# The content of a file: bytes, or a function that yields them for files that may be large.
Content = bytes | Callable[[], Iterator[bytes]]
Files = dict[str, Content]

# What the real repositories' .gitattributes hand to Git LFS, among the files made here.
LFS_SUFFIXES = (".safetensors", "tokenizer.json")


@dataclass(frozen=True)
class Revision:
    """One commit. `files` returns its whole tree, given the size of the tensors in bytes."""

    title: str
    date: str
    files: Callable[[int], Files]
    tag: str = ""


@dataclass(frozen=True)
class Miniature:
    """A repository to make: `size` is the bytes of tensors per revision at scale 1."""

    id: str
    size: int
    revisions: tuple[Revision, ...]
    private: bool = False
    gated: bool = False


def build(miniature: Miniature, store: Store, scale: float, recipe: str) -> Repository:
    """Write all revisions of a miniature into the store and return its description."""
    commits: list[Commit] = []
    tags: dict[str, str] = {}
    for revision in miniature.revisions:
        parent = commits[-1].id if commits else ""
        tree = revision.files(int(miniature.size * scale))
        files = tuple(_add(store, path, tree[path]) for path in sorted(tree))
        identity = commit_id(miniature.id, parent, revision.title, revision.date, files)
        commits.append(Commit(identity, revision.title, revision.date, files))
        if revision.tag:
            tags[revision.tag] = identity
    repository = Repository(
        id=miniature.id,
        commits=tuple(commits),
        branches={"main": commits[-1].id},
        tags=tags,
        private=miniature.private,
        gated=miniature.gated,
        recipe=recipe,
    )
    store.save(repository)
    return repository


def _add(store: Store, path: str, content: Content) -> File:
    chunks = iter([content]) if isinstance(content, bytes) else content()
    return store.add(path, chunks, lfs=path.endswith(LFS_SUFFIXES))
