"""Git repositories: the commit of a revision, asked over HTTP, and the git program within bounds.

No hook of a repository runs, no submodule is fetched, and a symbolic link is a file like any other.
"""

import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

from sparkwright.resolve.messages import MESSAGES
from sparkwright.resolve.queries import TIMEOUT, asking

#: Bytes of a file of a repository that is written while it is fetched: of its pack, above all.
MOST_BYTES = 300 * 1024**2
_SECONDS = 180
#: Over the user's own settings of git.
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


def resolve_commit(repository: str, revision: str) -> str:
    """The commit (40 hex digits) behind a branch, a tag or a commit, without a git program.

    The reference discovery of gitprotocol-http(5); both the smart and the dumb answer are read.

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
    raise MESSAGES.refusal("no-branch", where)


def git(folder: Path, *arguments: str, shown: str, none: int = 0) -> str:
    """Run git in a folder, and return its output.

    Args:
        shown: what messages name.
        none: how it ends where there is nothing to say.

    Raises:
        UserError: when it fails.
    """
    if shutil.which("git") is None:
        raise MESSAGES.refusal("no-git", shown)
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", *settings, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=_SECONDS, check=False, preexec_fn=_bounded,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise MESSAGES.refusal("slow-git", shown, seconds=_SECONDS) from None
    if done.returncode not in (0, none):
        errors = done.stderr.decode("utf-8", "replace").strip().splitlines()
        error = errors[-1] if errors else f"ended with {done.returncode}, without output"
        raise MESSAGES.refusal("failed-git", shown, error=error)
    return done.stdout.decode("utf-8", "replace")


def _bounded() -> None:
    """Bound files of git and of what it starts."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
