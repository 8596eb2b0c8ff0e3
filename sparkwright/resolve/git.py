"""Git repositories: the commit of a revision, queried over HTTP, and the git program within bounds.

No hook of a repository runs, no submodule is fetched, and a symbolic link is a file like any other.
"""

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import unquote, urlsplit

from sparkwright.resolve.messages import MESSAGES
from sparkwright.resolve.queries import Server, asking, basic

#: Largest number of bytes of a file that git writes during a fetch, mainly of the repository's
#: pack.
MOST_BYTES = 300 * 1024**2
#: Largest list of a repository's references in bytes: 100,000 references take some 8 MiB.
_MOST_REFERENCES = 16 << 20
#: Largest size of git's output in bytes.
_MOST_OUTPUT = 8 << 20
_SECONDS = 180
#: Options that override the user's settings of git.
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "credential.helper=",
    "fetch.recurseSubmodules=false",
    "http.followRedirects=initial",
    "gc.auto=0",
    "maintenance.auto=false",
)


def resolve_commit(repository: str, revision: str, private: Sequence[str] = ()) -> str:
    """The commit (40 hex digits) behind a branch, a tag or a commit, without a git program.

    The function uses the reference discovery of gitprotocol-http(5), and reads both the smart and
    the dumb answer. ``private`` lists servers in private networks to which the server may redirect.

    Raises:
        UserError: the repository can't be reached or has no such revision.
    """
    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    where = f"git repository {repository}@{revision}"
    parts = urlsplit(f"{repository.rstrip('/')}/info/refs?service=git-upload-pack")
    account, _, server = parts.netloc.rpartition("@")
    url = parts._replace(netloc=server).geturl()
    headers = basic(unquote(account)) if account else _netrc(url)
    with asking(where, "the repository", answer="its references", setting="image_mirrors for it"):
        answer = Server(url, private).get(url, headers, _MOST_REFERENCES).required()
    references = {
        match[2].decode("utf-8", "replace"): match[1].decode()
        for match in re.finditer(rb"([0-9a-f]{40})[ \t](refs/[^\s\0]+)", answer.content)
    }
    for name in (f"refs/heads/{revision}", f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}"):
        if name in references:
            return str(references[name])
    raise MESSAGES.refusal("no-branch", where)


def _netrc(url: str) -> dict[str, str]:
    """The account for a server in the user's ~/.netrc, as git sends it."""
    from requests.utils import get_netrc_auth

    account = ":".join(get_netrc_auth(url) or ())
    return basic(account) if account else {}


def git(folder: Path, *arguments: str, shown: str, none: int = 0) -> str:
    """Run git in a folder, and return its output.

    Args:
        shown: the address in messages.
        none: exit code of a command without a result, which is not a failure.

    Raises:
        UserError: git fails.
    """
    if shutil.which("git") is None:
        raise MESSAGES.refusal("no-git", shown)
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    # Output goes to files instead of pipes, since the size of a file can be limited, whatever git,
    # a repository or its server writes.
    with TemporaryFile() as output, TemporaryFile() as errors:
        try:
            done = subprocess.run(
                ["git", *settings, *arguments], cwd=folder, env=environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=errors, timeout=_SECONDS,
                check=False, preexec_fn=_bounded,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise MESSAGES.refusal("slow-git", shown, seconds=_SECONDS) from None
        texts = [os.pread(file.fileno(), _MOST_OUTPUT, 0) for file in (output, errors)]
        text, error = (text.decode("utf-8", "replace") for text in texts)
        if len(texts[0]) == _MOST_OUTPUT or done.returncode not in (0, none):
            lines = error.strip().splitlines() or [f"exit code {done.returncode}, without output"]
            raise MESSAGES.refusal("failed-git", shown, error=lines[-1][:500])
    return text


def _bounded() -> None:
    """Limit the size of files that git and its child processes write."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
