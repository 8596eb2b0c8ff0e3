"""Asking a git repository over HTTP which commit a revision is, without a git program.

The reference discovery of gitprotocol-http(5); both the smart and the dumb answer are read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake

if TYPE_CHECKING:
    pass

_TIMEOUT = (5, 30)


class GitError(Exception):
    """The repository could not be asked, or has no such revision; carries the problem."""

    def __init__(self, problem: Finding) -> None:
        self.problem = problem
        super().__init__(str(problem))


def resolve_commit(repository: str, revision: str) -> str:
    """The commit (40 hex digits) behind a branch, a tag or a commit.

    Raises:
        GitError: when the repository can't be asked or has no such revision.
    """
    import requests  # a locked run sends no request, and this takes 50 ms to import

    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    where = f"git repository {repository}@{revision}"
    url = f"{repository.rstrip('/')}/info/refs?service=git-upload-pack"
    try:
        answer = requests.get(url, timeout=_TIMEOUT)
        answer.raise_for_status()
    except requests.RequestException as error:
        raise GitError(
            mistake(
                where,
                f"it could not be asked: {error}",
                "check the network of this machine, or set image_mirrors for this address",
            )
        ) from error
    references = {
        name: commit
        for commit, name in re.findall(r"([0-9a-f]{40})[ \t](refs/[^\s\0]+)", answer.text)
    }
    for name in (f"refs/heads/{revision}", f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}"):
        if name in references:
            return str(references[name])
    raise GitError(
        mistake(where, "the repository has no such branch or tag", "take another revision")
    )
