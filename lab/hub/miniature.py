"""A miniature repository: a name, and revisions with different weights."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .store import Commit, File, Repository, Store, commit_id
from .weights import Tensor, index, safetensors

# The content of a file: bytes, or a function that yields them for files that may be large.
Content = bytes | Callable[[], Iterator[bytes]]
Files = dict[str, Content]

# Patterns of the real repositories' .gitattributes for Git LFS, among the files made here.
LFS_SUFFIXES = (".safetensors", ".gguf", "tokenizer.json")
GIT_ATTRIBUTES = b"""\
*.safetensors filter=lfs diff=lfs merge=lfs -text
tokenizer.json filter=lfs diff=lfs merge=lfs -text
"""
#: Folder of the small files beside the weights: FAMILY/, NAME/ and NAME/REVISION/.
SMALL_FILES = Path(__file__).parent / "files"


@dataclass(frozen=True)
class Revision:
    """One commit. `files` returns its weights, given the size of the tensors in bytes."""

    title: str
    date: str
    files: Callable[[int], Files]
    tag: str = ""


@dataclass(frozen=True)
class Miniature:
    """A repository to make: `size` is the bytes of tensors per revision at scale 1.

    `family` is the folder of the small files that it shares with other repositories.
    """

    id: str
    size: int
    revisions: tuple[Revision, ...]
    private: bool = False
    gated: bool = False
    family: str = ""

    def newest(self) -> Files:
        """Return the newest revision's tree at scale 1."""
        return self.tree(len(self.revisions), 1.0)

    def tree(self, number: int, scale: float) -> Files:
        """Return the tree of a revision, counted from 1: its small files and its weights."""
        name = self.id.partition("/")[2]
        files: Files = {".gitattributes": GIT_ATTRIBUTES}
        for folder in (self.family or name, name, f"{name}/{number}"):
            files |= {
                file.name: file.read_bytes()
                for file in SMALL_FILES.joinpath(folder).glob("*")
                if file.is_file()
            }
        return files | self.revisions[number - 1].files(int(self.size * scale))


def build(miniature: Miniature, store: Store, scale: float, recipe: str) -> Repository:
    """Write all revisions of a miniature into the store and return its description."""
    commits: list[Commit] = []
    tags: dict[str, str] = {}
    for number, revision in enumerate(miniature.revisions, start=1):
        parent = commits[-1].id if commits else ""
        tree = miniature.tree(number, scale)
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


def weight_files(parts: Mapping[str, Sequence[Tensor]]) -> Files:
    """Return weight files by their names, and their index if there are several files."""
    files: Files = {name: partial(safetensors, part) for name, part in parts.items()}
    return files | ({"model.safetensors.index.json": index(parts)} if len(parts) > 1 else {})


def _add(store: Store, path: str, content: Content) -> File:
    chunks = iter([content]) if isinstance(content, bytes) else content()
    return store.add(path, chunks, lfs=path.endswith(LFS_SUFFIXES))
