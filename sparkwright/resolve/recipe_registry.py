"""Registries of recipes: one commit of a git repository, fetched bare and read only by git.

A foreign repository is never checked out: none of its hooks runs, no submodule is fetched, no
filter (LFS) runs, and a symbolic link in it is a file like any other, which is skipped.
"""

import datetime as dt
import hashlib
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from sparkwright.config.registries import is_local, local_path, registry_address
from sparkwright.documents import caches, text_files
from sparkwright.findings.user_error import Problems, UserError
from sparkwright.host.lib.records import dataclass
from sparkwright.resolve.git import git
from sparkwright.resolve.lock import Lock
from sparkwright.resolve.messages import MESSAGES

MOST_FILES = 20_000
#: Largest size of a recipe in bytes.
LARGEST_FILE = 256 * 1024


@dataclass(frozen=True)
class Snapshot:
    """A commit of a recipe registry.

    Attributes:
        address: address of the repository.
        commit: 40 hex digits.
        place: the bare repository on this machine.
    """

    address: str
    commit: str
    place: Path

    @property
    def source(self) -> str:
        """``repository@commit``."""
        return f"{self.address.removeprefix('https://').removesuffix('.git')}@{self.commit}"

    def date(self) -> dt.date:
        """The commit's day."""
        day = self._git("show", "--no-patch", "--format=%cs", self.commit)
        return dt.date.fromisoformat(day.strip())

    def files(self, *, every: bool = False) -> list[str]:
        """Paths of plain files of a recipe's usual size; with ``every``, paths of all files.

        Raises:
            UserError: the tree has too many files.
        """
        listed = self._git("ls-tree", "-r", "-l", "-z", "--full-tree", self.commit)
        result = []
        for entry in filter(None, listed.split("\0")):
            facts, _, path = entry.partition("\t")
            mode, kind, _, size = facts.split()
            # A symbolic link has git's mode 120000.
            plain = kind == "blob" and mode.startswith("100") and size.isdigit()
            if every or (plain and int(size) <= LARGEST_FILE):
                result.append(path)
        if len(result) > MOST_FILES:
            raise MESSAGES.refusal("many-files", self.address, most=MOST_FILES)
        return result

    def naming(self, text: str) -> list[str]:
        """Paths of ``files`` that contain these words."""
        pattern = ("--fixed-strings", "-e", text)
        result = self._git("grep", "-l", "-z", *pattern, self.commit, "--", none=1)
        named = {path.removeprefix(f"{self.commit}:") for path in result.split("\0")}
        return [path for path in self.files() if path in named]

    def read(self, path: str) -> str:
        """The text of a file of ``files``."""
        return self._git("cat-file", "blob", f"{self.commit}:{path}")

    def _git(self, *arguments: str, none: int = 0) -> str:
        return git(self.place, *arguments, shown=str(self.place), none=none)


def snapshot(address: str, commit: str | None = None, cache: Path | None = None) -> Snapshot:
    """A commit of a registry, from the cache if the commit is cached.

    Args:
        commit: the pinned commit; None for the newest commit of the registry's default branch.
        cache: the controller's cache of fetched registries; default: the user's.

    Raises:
        UserError: git can't fetch the commit, or the address is not allowed for git.
    """
    try:
        registry_address(address)
    except ValueError as error:
        where = f"registry {address!r}"
        raise MESSAGES.refusal("no-registry-address", where, problem=error) from None
    run = partial(git, shown=address)
    folder = (cache or caches.of_user("registries")).resolve()
    path = folder / hashlib.sha256(address.encode()).hexdigest()[:16]
    text_files.make_folder(path)
    if not (path / "HEAD").is_file():
        run(path, "init", "--quiet", "--bare", "--template=", ".")
    if commit and _has(path, commit):
        return Snapshot(address, commit, path)
    url = str(local_path(address)) if is_local(address) else address
    protocol = "file" if is_local(address) else "https"
    run(
        path, "-c", "protocol.allow=never", "-c", f"protocol.{protocol}.allow=always",
        "-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--depth=1",
        "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--force",
        "--upload-pack=git-upload-pack", "--", url, f"{commit or 'HEAD'}:refs/registry/fetched",
    )  # fmt: skip
    fetched = run(path, "rev-parse", "--verify", "refs/registry/fetched^{commit}").strip()
    if not re.fullmatch(r"[0-9a-f]{40}", fetched) or commit not in (None, fetched):
        raise MESSAGES.refusal("another-commit", address, fetched=fetched, commit=commit)
    # The commit is stored under its own name, so a later fetch keeps the commit.
    run(path, "update-ref", f"refs/registry/{fetched}", fetched)
    return Snapshot(address, fetched, path)


def with_registries(addresses: Iterable[str], lock: Lock, *, upgrade: bool) -> Lock:
    """The lock with a commit for each of these registries, and for no other registry.

    Args:
        upgrade: whether to query each registry for its newest commit, even if a commit is pinned.

    Raises:
        UserError: the message names every registry that can't be fetched.
    """
    kept = {} if upgrade else lock.registries or {}
    pins: dict[str, str] = {}
    problems = Problems()
    for address in sorted(addresses):
        with problems.collected():
            pins[address] = kept.get(address) or snapshot(address).commit
    problems.stop()
    return lock.model_copy(update={"registries": pins or None})


def _has(folder: Path, commit: str) -> bool:
    try:
        return git(folder, "rev-parse", f"refs/registry/{commit}", shown="").strip() == commit
    except UserError:
        return False
