"""Registries of recipes: one commit of a git repository, fetched bare and read by git alone.

A foreign repository is never checked out: no hook of it runs, no submodule is fetched, no filter
(LFS) is asked, and a symbolic link in it is a file like any other, which is passed over.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sparkwright.config.registries import is_local, local_path, registry_address
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.resolve.lock import Lock

#: Where the controller keeps what it has fetched.
CACHE = Path(".sparkwright/cache/registries")
#: Bytes of a file of a repository that is written while it is fetched: of its pack, above all.
MOST_BYTES = 300 * 1024**2
MOST_FILES = 20_000
#: Bytes of a recipe.
LARGEST_FILE = 256 * 1024
_SECONDS = 180
#: Over the user's own settings of git.
_SETTINGS = (
    "protocol.allow=never",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "credential.helper=",
    "fetch.fsckObjects=true",
    "fetch.recurseSubmodules=false",
    "http.followRedirects=initial",
    "gc.auto=0",
    "maintenance.auto=false",
)


@dataclass(frozen=True)
class Snapshot:
    """One commit of a registry.

    Attributes:
        address: of the repository.
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
        said = _git(self.place, "show", "--no-patch", "--format=%cs", self.commit)
        return dt.date.fromisoformat(said.strip())

    def files(self) -> list[str]:
        """Paths of plain files of a size that a recipe may have.

        Raises:
            UserError: for a tree without end.
        """
        listed = _git(self.place, "ls-tree", "-r", "-l", "-z", "--full-tree", self.commit)
        found = []
        for entry in filter(None, listed.split("\0")):
            facts, _, path = entry.partition("\t")
            mode, kind, _, size = facts.split()
            # 120000 is a symbolic link.
            plain = kind == "blob" and mode.startswith("100") and size.isdigit()
            if plain and int(size) <= LARGEST_FILE:
                found.append(path)
        if len(found) > MOST_FILES:
            raise UserError(
                [mistake(self.address, f"more than {MOST_FILES} files", "name another")]
            )
        return found

    def naming(self, words: str) -> list[str]:
        """Those of ``files`` whose text has these words."""
        said = _git(
            self.place, "grep", "-l", "-z", "--fixed-strings", "-e", words, self.commit, "--",
            none=1,
        )  # fmt: skip
        named = {one.removeprefix(f"{self.commit}:") for one in said.split("\0")}
        return [path for path in self.files() if path in named]

    def read(self, path: str) -> str:
        """The text of a file of ``files``."""
        return _git(self.place, "cat-file", "blob", f"{self.commit}:{path}")


def snapshot(address: str, commit: str | None = None, cache: Path = CACHE) -> Snapshot:
    """A commit of a registry, from the cache where it is there already.

    Args:
        commit: the pinned one; None for the newest of its default branch.

    Raises:
        UserError: when git can't have it, or the address is none that git is given.
    """
    try:
        registry_address(address)
    except ValueError as error:
        raise UserError([mistake(f"registry {address!r}", str(error), "correct it")]) from None
    if shutil.which("git") is None:
        remedy = "install it (sudo apt-get install git), or import a folder"
        raise UserError([mistake(address, "git is not installed on this machine", remedy)])
    place = cache.resolve() / hashlib.sha256(address.encode()).hexdigest()[:16]
    if not (place / "HEAD").is_file():
        place.mkdir(parents=True, exist_ok=True)
        _git(place, "init", "--quiet", "--bare", "--template=", ".")
    if commit and _has(place, commit):
        return Snapshot(address, commit, place)
    url = str(local_path(address)) if is_local(address) else address
    protocol = "file" if is_local(address) else "https"
    _git(
        place, "-c", f"protocol.{protocol}.allow=always", "fetch", "--quiet", "--depth=1",
        "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--force",
        "--upload-pack=git-upload-pack", "--", url, f"{commit or 'HEAD'}:refs/registry/fetched",
        shown=address,
    )  # fmt: skip
    fetched = _git(place, "rev-parse", "--verify", "refs/registry/fetched^{commit}").strip()
    if not re.fullmatch(r"[0-9a-f]{40}", fetched) or commit not in (None, fetched):
        raise UserError([mistake(address, f"it gave {fetched} for {commit}", "try again")])
    # Kept by its own name, so that a later fetch does not lose it.
    _git(place, "update-ref", f"refs/registry/{fetched}", fetched)
    return Snapshot(address, fetched, place)


def with_registries(addresses: Iterable[str], lock: Lock, *, upgrade: bool) -> Lock:
    """The lock with a commit for each of these registries, and for no other.

    Args:
        upgrade: whether each is asked for its newest commit, pinned or not.

    Raises:
        UserError: for every one that can't be had.
    """
    kept = {} if upgrade else lock.registries or {}
    pins: dict[str, str] = {}
    problems: list[Finding] = []
    for address in sorted(addresses):
        try:
            pins[address] = kept.get(address) or snapshot(address).commit
        except UserError as error:
            problems += error.findings
    if problems:
        raise UserError(problems)
    return lock.model_copy(update={"registries": pins or None})


def _has(place: Path, commit: str) -> bool:
    try:
        return _git(place, "rev-parse", f"refs/registry/{commit}").strip() == commit
    except UserError:
        return False


def _bounded() -> None:
    """Of git and what it starts: no file grows beyond this."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))


def _git(place: Path, *words: str, shown: str = "", none: int = 0) -> str:
    """What git says.

    Args:
        shown: what messages name.
        none: how it ends where there is nothing to say.
    """
    settings = [word for one in _SETTINGS for word in ("-c", one)]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C",
    }  # fmt: skip
    try:
        done = subprocess.run(
            ["git", *settings, *words], cwd=place, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=_SECONDS, check=False, preexec_fn=_bounded,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UserError(
            [mistake(shown or str(place), f"git did not end in {_SECONDS} s", "try again")]
        ) from None
    if done.returncode not in (0, none):
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        what = f"git: {said[-1] if said else f'ended with {done.returncode}, without output'}"
        remedy = "check the address and this machine's network"
        raise UserError([mistake(shown or str(place), what, remedy)])
    return done.stdout.decode("utf-8", "replace")
