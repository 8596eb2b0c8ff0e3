"""Build contexts of images from a git repository at a commit, served by the lab's hub."""

import subprocess
from pathlib import Path

import pytest

from lab import git_repository
from lab.hub.serving import running
from sparkwright.findings.user_error import UserError
from sparkwright.resolve.build_context import build_context
from sparkwright.resolve.git import resolve_commit


def test_the_repository_has_the_same_commit_everywhere_and_can_be_fetched(tmp_path: Path) -> None:
    commit = git_repository.make(tmp_path / "one/git")
    assert git_repository.make(tmp_path / "two/git") == commit
    assert git_repository.make(tmp_path / "one/git") == commit
    with running(tmp_path / "one") as url:
        address = f"{url}/git/{git_repository.NAME}"
        assert resolve_commit(address, "main") == commit
        with pytest.raises(UserError) as raised:
            resolve_commit(address, "nothing")
        assert "no branch or tag of this name" in raised.value.findings[0].observed
        files = build_context(address, commit, "turboquant", tmp_path / "cache")
        assert set(files) == {"Dockerfile", "turboquant-fake"}
        with pytest.raises(UserError, match="no nowhere/Dockerfile"):
            build_context(address, commit, "nowhere", tmp_path / "cache")
        with pytest.raises(UserError):
            build_context(address, "0" * 40, "turboquant", tmp_path / "cache")
    # The commit is kept, and is not fetched again.
    assert build_context(address, commit, "turboquant", tmp_path / "cache") == files
    assert subprocess.run(["ls", "-A", str(tmp_path / "cache")], capture_output=True, text=True,
                          check=True).stdout.split() == [commit]  # fmt: skip
