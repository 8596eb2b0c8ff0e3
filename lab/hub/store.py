"""Files of a hub on its disk: blobs named by their sha256, and one JSON file per repository.

    DIR/blobs/ab/abcd...                  the bytes of every file, shared by all revisions
    DIR/repositories/ORG/NAME.json        commits with their listings, branches, tags

Ids are computed as by git and Git LFS: a small file has its git blob id (sha1); a large file
has its sha256, and the git blob id of its pointer.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

COPY_BYTES = 1 << 20


def git_blob_id(content: bytes) -> str:
    """Return the id that git gives to a blob with this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def lfs_pointer(sha256: str, size: int) -> bytes:
    """Return the Git LFS pointer file that git stores instead of a large file."""
    return (
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
    ).encode()


@dataclass(frozen=True)
class File:
    """One file of a commit.

    `blob_id` is git's id of the content, or of the LFS pointer when `lfs` is true.
    """

    path: str
    size: int
    sha256: str
    blob_id: str
    lfs: bool

    @property
    def etag(self) -> str:
        """The entity tag without quotes: sha256 of a large file, git blob id of a small file."""
        return self.sha256 if self.lfs else self.blob_id

    @property
    def pointer_size(self) -> int:
        """Size in bytes of the LFS pointer."""
        return len(lfs_pointer(self.sha256, self.size))


@dataclass(frozen=True)
class Commit:
    """One revision: `date` is ISO 8601 in UTC with milliseconds and a Z, as the hub writes it."""

    id: str
    title: str
    date: str
    files: tuple[File, ...]

    def file(self, path: str) -> File | None:
        """Return the file with this path, or None."""
        return next((file for file in self.files if file.path == path), None)


@dataclass(frozen=True)
class Repository:
    """A repository with its whole history, oldest commit first."""

    id: str
    commits: tuple[Commit, ...]
    branches: dict[str, str]
    tags: dict[str, str] = field(default_factory=dict)
    private: bool = False
    gated: bool = False
    # Hash of the files' sources: while it is the same, the repository is not made again.
    recipe: str = ""

    def commit(self, revision: str) -> Commit | None:
        """Return the commit that a full commit id, a branch or a tag names, or None."""
        wanted = self.branches.get(revision) or self.tags.get(revision) or revision
        return next((commit for commit in self.commits if commit.id == wanted), None)


def commit_id(repository: str, parent: str, title: str, date: str, files: Iterable[File]) -> str:
    """Return a stable id of 40 hex digits over the listing and its place in the history."""
    listing = [[file.path, file.size, file.sha256] for file in files]
    text = json.dumps([repository, parent, title, date, listing], separators=(",", ":"))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


class Store:
    """Store in a directory with the layout above."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read: dict[str, tuple[int, Repository]] = {}

    def blob(self, sha256: str) -> Path:
        """Return the path of the content with this sha256."""
        return self.root / "blobs" / sha256[:2] / sha256

    def add(self, path: str, chunks: Iterable[bytes], *, lfs: bool) -> File:
        """Write the chunks as a blob, unless it exists, and return the resulting file."""
        directory = self.root / "blobs"
        directory.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        size = 0
        handle, name = tempfile.mkstemp(dir=directory, prefix=".new-")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                for chunk in chunks:
                    stream.write(chunk)
                    digest.update(chunk)
                    size += len(chunk)
            sha256 = digest.hexdigest()
            blob_id = git_blob_id(lfs_pointer(sha256, size) if lfs else temporary.read_bytes())
            target = self.blob(sha256)
            target.parent.mkdir(exist_ok=True)
            temporary.chmod(0o644)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        return File(path, size, sha256, blob_id, lfs)

    def complete(self, repository: Repository) -> bool:
        """Return whether every blob of every commit exists with its full size."""
        files = {file for commit in repository.commits for file in commit.files}
        for file in files:
            blob = self.blob(file.sha256)
            if not blob.is_file() or blob.stat().st_size != file.size:
                return False
        return True

    def save(self, repository: Repository) -> None:
        """Write the repository's description, in one step."""
        target = self._description(repository.id)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(repository), indent=1) + "\n", encoding="utf-8")
        temporary.replace(target)

    def load(self, repository: str) -> Repository | None:
        """Return a repository, or None; a changed description is read again."""
        path = self._description(repository)
        try:
            changed = path.stat().st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            return None
        expected = self._read.get(repository)
        if expected is None or expected[0] != changed:
            expected = (changed, _repository(json.loads(path.read_text(encoding="utf-8"))))
            self._read[repository] = expected
        return expected[1]

    def repositories(self) -> Iterator[str]:
        """Yield the ids of all repositories, sorted."""
        directory = self.root / "repositories"
        for path in sorted(directory.glob("*/*.json")):
            yield f"{path.parent.name}/{path.name.removesuffix('.json')}"

    def _description(self, repository: str) -> Path:
        organisation, _, name = repository.partition("/")
        return self.root / "repositories" / organisation / f"{name}.json"


def _repository(data: dict[str, Any]) -> Repository:
    commits = tuple(
        Commit(
            id=commit["id"],
            title=commit["title"],
            date=commit["date"],
            files=tuple(File(**file) for file in commit["files"]),
        )
        for commit in data["commits"]
    )
    return Repository(**{**data, "commits": commits})
