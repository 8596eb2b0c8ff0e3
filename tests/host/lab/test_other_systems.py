"""The lab's other images: one driven by the environment, one that is built from a repository."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from lab import git_repository
from lab.hub.serving import running
from lab.serving.build import image_of
from lab.serving.fake_vllm.from_environment import words
from lab.serving.tags import DFLASH, TAGS, ULTIMATE
from sparkwright.resolve.build_context import BuildContextError, build_context
from sparkwright.resolve.git import GitError, resolve_commit


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What has to be set, and nothing else."""
    return {"MODEL_PATH": "/models/target", "DFLASH_DRAFTER": str(tmp_path)}


def test_the_environment_becomes_the_cards_command(environment: dict[str, str]) -> None:
    command = words({**environment, "MAX_NUM_SEQS": "4", "EXTRA_ARGS": "--port 8001 --seed '7'"})
    assert command[:2] == ["serve", "/models/target"]
    flags = dict(itertools.pairwise(command[2:]))
    assert flags["--served-model-name"] == "target"
    assert flags["--max-num-seqs"] == "4"
    assert flags["--max-model-len"] == "65536"
    assert flags["--attention-backend"] == "flash_attn"
    assert '"num_speculative_tokens": 15' in flags["--speculative-config"]
    assert command[-4:] == ["--port", "8001", "--seed", "7"]  # last, so that it wins
    assert "--api-key" not in command


def test_a_key_in_the_environment_ends_on_the_command_line(environment: dict[str, str]) -> None:
    """As the real entry point has it: that is why it is given none."""
    command = words({**environment, "VLLM_API_KEY": "sk-of-nobody-0123456789"})
    assert command[command.index("--api-key") + 1] == "sk-of-nobody-0123456789"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"MODEL_PATH": ""}, "MODEL_PATH must be set"),
        ({"DFLASH_DRAFTER": "z-lab/Qwen3.5-27B-DFlash"}, "the hub can't be reached"),
        ({"ENABLE_TURBOQUANT": "1"}, "this image has no TurboQuant"),
        ({"DFLASH_NUM_SPEC_TOKENS": "many"}, "DFLASH_NUM_SPEC_TOKENS is no number"),
        ({"EXTRA_ARGS": "--seed '7"}, "EXTRA_ARGS: No closing quotation"),
    ],
)
def test_what_the_entry_point_refuses(
    environment: dict[str, str], change: dict[str, str], what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        words({**environment, **change})


def test_every_repository_has_its_tags() -> None:
    repositories = {tag.repository for tag in TAGS}
    assert len(repositories) == 4
    (dflash,) = [tag for tag in TAGS if tag.repository == DFLASH]
    assert dflash.entrypoint == ("/usr/local/bin/dflash-entrypoint.sh",)
    images = [image_of(tag, []) for tag in TAGS]
    assert len({image.index.digest for image in images}) == len(TAGS)
    ultimate = {name for tag in TAGS if tag.repository == ULTIMATE for name in tag.names}
    assert "2026-06-04-pr44389" in ultimate


def test_the_repository_is_the_same_everywhere_and_can_be_fetched(tmp_path: Path) -> None:
    commit = git_repository.make(tmp_path / "one/git")
    assert git_repository.make(tmp_path / "two/git") == commit
    assert git_repository.make(tmp_path / "one/git") == commit
    with running(tmp_path / "one") as url:
        address = f"{url}/git/{git_repository.NAME}"
        assert resolve_commit(address, "main") == commit
        with pytest.raises(GitError) as raised:
            resolve_commit(address, "nothing")
        assert "no such branch" in raised.value.problem.observed
        files = build_context(address, commit, "turboquant", tmp_path / "cache")
        assert set(files) == {"Dockerfile", "turboquant-fake"}
        with pytest.raises(BuildContextError, match="no nowhere/Dockerfile"):
            build_context(address, commit, "nowhere", tmp_path / "cache")
        with pytest.raises(BuildContextError):
            build_context(address, "0" * 40, "turboquant", tmp_path / "cache")
    # Kept: the same commit is not fetched again.
    assert build_context(address, commit, "turboquant", tmp_path / "cache") == files
    assert subprocess.run(["ls", "-A", str(tmp_path / "cache")], capture_output=True, text=True,
                          check=True).stdout.split() == [commit]  # fmt: skip
