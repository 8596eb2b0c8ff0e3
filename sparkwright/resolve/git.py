"""Asking a git repository over HTTP which commit a revision is, without a git program.

The reference discovery of gitprotocol-http(5); both the smart and the dumb answer are read.
"""

from __future__ import annotations

import re

from sparkwright.findings.user_error import UserError, mistake
from sparkwright.resolve.queries import TIMEOUT, asking


def resolve_commit(repository: str, revision: str) -> str:
    """The commit (40 hex digits) behind a branch, a tag or a commit.

    Raises:
        UserError: when the repository can't be asked or has no such revision.
    """
    import requests  # a locked run sends no request, and this takes 50 ms to import

    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    where = f"git repository {repository}@{revision}"
    url = f"{repository.rstrip('/')}/info/refs?service=git-upload-pack"
    with asking(where, "the repository", answer="its references", setting="image_mirrors for it"):
        answer = requests.get(url, timeout=TIMEOUT)
        answer.raise_for_status()
    references = {
        name: commit
        for commit, name in re.findall(r"([0-9a-f]{40})[ \t](refs/[^\s\0]+)", answer.text)
    }
    for name in (f"refs/heads/{revision}", f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}"):
        if name in references:
            return str(references[name])
    what = "the repository has no such branch or tag"
    raise UserError([mistake(where, what, "take another revision")])
