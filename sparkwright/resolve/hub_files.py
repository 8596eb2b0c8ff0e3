"""Single files of Hugging Face repositories, kept in the lock with their text."""

from __future__ import annotations

import hashlib
from functools import cache
from urllib.parse import quote

from sparkwright.documents.bounds import LONGEST
from sparkwright.resolve.messages import MESSAGES
from sparkwright.resolve.pinned_text import PinnedText
from sparkwright.resolve.queries import Server, asking


@cache  # once per run for all hosts
def ask_hub(
    endpoint: str, repository: str, revision: str, path: str, token: str | None,
    private: tuple[str, ...] = (),
) -> PinnedText:  # fmt: skip
    """Ask a hub for a text file at a revision.

    Raises:
        UserError: when there is no such file, it is no text, or the hub is out of reach.
    """
    where = f"file {repository}@{revision}/{path}"
    # A token in clear text on the network is nobody's secret any more.
    clear = token is None or not endpoint.startswith("https://")
    headers = {} if clear else {"Authorization": f"Bearer {token}"}
    with asking(where, f"the hub {endpoint}", answer="text", setting="hub_endpoint"):
        url = f"{endpoint}/{repository}/resolve/{quote(revision, '')}/{quote(path)}"
        answer = Server(endpoint, private).get(url, headers, LONGEST)
        commit = answer.headers.get("X-Repo-Commit", revision)
        if answer.status != 200:
            raise MESSAGES.refusal("no-hub-file", where, status=answer.status)
        digest = hashlib.sha256(answer.content).hexdigest()
        return PinnedText(commit, digest, answer.content.decode())
