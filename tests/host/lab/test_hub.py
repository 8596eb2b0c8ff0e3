"""The lab's hub against the real clients, huggingface_hub and git; an image that the environment
drives."""

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_download

from lab import git_repository
from lab.hub.access import MEMBER_TOKEN
from lab.hub.repositories import make
from lab.hub.serving import running
from lab.hub.store import Commit, Store
from lab.hub.tiny_gguf import REPOSITORY as GGUF
from lab.serving.fake_vllm.from_environment import arguments
from sparkwright.findings.user_error import UserError
from sparkwright.resolve.build_context import build_context
from sparkwright.resolve.git import resolve_commit
from sparkwright.resolve.hub import resolve_model
from tests.unit.builders import catalog

BODY = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"
DRAFTER = "z-lab/Qwen3.6-35B-A3B-DFlash"
SHARD = "model-00001-of-00009.safetensors"
# The same on every machine; they change only with what lab/hub makes.
BODY_COMMIT = "7113055e88243402e70f170964d148cf3dc9119c"
DRAFTER_COMMIT = "7c1458e4a6a64ecb437b8009127979bb9e38f242"


class Lab:
    """A running hub and what lies in it."""

    def __init__(self, url: str, data: Path) -> None:
        self.url = url
        self.api = HfApi(endpoint=url, token=False)
        self.store = Store(data)

    def main(self, name: str) -> Commit:
        result = self.store.load(name)
        assert result is not None
        return result.commits[-1]

    def content(self, name: str, path: str) -> bytes:
        file = self.main(name).file(path)
        assert file is not None
        return self.store.blob(file.sha256).read_bytes()

    def tokens_at_cdn(self) -> int:
        counters = requests.get(f"{self.url}/control/counters", timeout=10).json()
        return int(counters["tokens_at_cdn"])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hub")
    make(directory)
    return directory


@pytest.fixture(scope="module")
def served(data: Path) -> Iterator[Lab]:
    with running(data) as url:
        yield Lab(url, data)


@pytest.fixture(scope="module")
def apart(data: Path) -> Iterator[Lab]:
    """A hub whose CDN is of another origin, as the real one's is."""
    with running(data, cdn_host="localhost") as url:
        yield Lab(url, data)


def test_commit_ids_are_the_same_on_every_machine(served: Lab) -> None:
    assert served.main(BODY).id == BODY_COMMIT
    assert served.main(DRAFTER).id == DRAFTER_COMMIT


def test_model_info_has_sizes_and_hashes(served: Lab) -> None:
    info = served.api.model_info(BODY, files_metadata=True)
    commit = served.main(BODY)
    assert info.sha == commit.id
    assert info.last_modified is not None
    assert info.last_modified.isoformat() == "2026-06-19T16:45:00+00:00"
    result = {
        entry.rfilename: (entry.size, entry.blob_id, entry.lfs and entry.lfs.sha256)
        for entry in info.siblings or []
    }
    assert result == {
        file.path: (file.size, file.blob_id, file.sha256 if file.lfs else None)
        for file in commit.files
    }


@pytest.mark.parametrize("origin", ["served", "apart"])
def test_file_metadata(origin: str, request: pytest.FixtureRequest) -> None:
    # A client follows a redirect within the hub's origin, and stops at one that leaves it.
    lab: Lab = request.getfixturevalue(origin)
    for path in (SHARD, "config.json"):
        file = lab.main(BODY).file(path)
        assert file is not None
        result = get_hf_file_metadata(f"{lab.url}/{BODY}/resolve/main/{path}", token=False)
        assert result.commit_hash == BODY_COMMIT
        assert result.etag == (file.sha256 if path == SHARD else file.blob_id)
        assert result.size == file.size
        assert requests.get(result.location, timeout=10).content == lab.content(BODY, path)
        assert ("/cdn/" if file.lfs else "/resolve/") in result.location
        assert ("localhost" in result.location) == (origin == "apart" and file.lfs)


def test_token_stays_with_the_hub(apart: Lab, tmp_path: Path) -> None:
    path = hf_hub_download(
        "lab/gated-tiny",
        "model.safetensors",
        cache_dir=tmp_path,
        endpoint=apart.url,
        token=MEMBER_TOKEN,
    )
    assert Path(path).read_bytes() == apart.content("lab/gated-tiny", "model.safetensors")
    assert apart.tokens_at_cdn() == 0
    link = get_hf_file_metadata(
        f"{apart.url}/lab/gated-tiny/resolve/main/model.safetensors", token=MEMBER_TOKEN
    ).location
    requests.get(link, headers={"Authorization": f"Bearer {MEMBER_TOKEN}"}, timeout=10)
    assert apart.tokens_at_cdn() == 1


@pytest.mark.parametrize(
    ("choice", "files"),
    [
        ("Q8_0", ["tiny-qwen3-Q8_0.gguf"]),
        ("12.0GiB", ["tiny-qwen3-Q8_0.gguf"]),
        ("F16", [f"F16/tiny-qwen3-F16-0000{part}-of-00002.gguf" for part in (1, 2)]),
    ],
)
def test_gguf_files_are_chosen_by_their_headers(served: Lab, choice: str, files: list[str]) -> None:
    """Written by the lab's code, read by the plan's, through ranges and redirects."""
    model = resolve_model(served.url, GGUF, "main", None, marks=("<|im_start|>",), choice=choice)
    assert list(model.files) == [*files, "mmproj-F16.gguf"]
    facts = model.facts
    assert facts is not None
    assert facts.gguf is not None
    assert (facts.model_type, facts.template) == ("qwen3", ("<|im_start|>",))
    assert facts.gguf.quantization == ("F16" if choice == "F16" else "Q8_0")
    total = sum(model.files[path].size for path in files)
    assert 0.5 * total < facts.gguf.tensor_bytes < total
    assert len(facts.gguf.layer_bytes) == model.kv[0].layers


@pytest.mark.parametrize("name", [m.name for m in catalog().models.values() if m.format == "gguf"])
def test_headers_of_gguf_files_have_the_catalogs_geometry(served: Lab, name: str) -> None:
    own = catalog().models[name]
    choice = f"{own.file},none"
    model = resolve_model(served.url, own.repository, "main", None, marks=(), choice=choice)
    assert (model.kv, list(model.files)) == (own.kv, [own.file])
    assert model.facts is not None
    assert (model.facts.context, model.facts.hybrid) == (own.context, own.hybrid)
    assert f"{model.facts.quantization}.gguf" in str(own.file)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Settings that are needed, and nothing else."""
    return {"MODEL_PATH": "/models/target", "DFLASH_DRAFTER": str(tmp_path)}


def test_the_environment_becomes_the_cards_command(environment: dict[str, str]) -> None:
    command = arguments(
        {**environment, "MAX_NUM_SEQS": "4", "EXTRA_ARGS": "--port 8001 --seed '7'"}
    )
    assert command[:2] == ["serve", "/models/target"]
    flags = dict(itertools.pairwise(command[2:]))
    assert flags["--served-model-name"] == "target"
    assert flags["--max-num-seqs"] == "4"
    assert flags["--max-model-len"] == "65536"
    assert flags["--attention-backend"] == "flash_attn"
    assert '"num_speculative_tokens": 15' in flags["--speculative-config"]
    assert command[-4:] == ["--port", "8001", "--seed", "7"]  # last, so that it wins
    assert "--api-key" not in command


def test_the_repository_is_the_same_everywhere_and_can_be_fetched(tmp_path: Path) -> None:
    commit = git_repository.make(tmp_path / "one/git")
    assert git_repository.make(tmp_path / "two/git") == commit
    assert git_repository.make(tmp_path / "one/git") == commit
    with running(tmp_path / "one") as url:
        address = f"{url}/git/{git_repository.NAME}"
        assert resolve_commit(address, "main") == commit
        with pytest.raises(UserError) as raised:
            resolve_commit(address, "nothing")
        assert "no such branch" in raised.value.findings[0].observed
        files = build_context(address, commit, "turboquant", tmp_path / "cache")
        assert set(files) == {"Dockerfile", "turboquant-fake"}
        with pytest.raises(UserError, match="no nowhere/Dockerfile"):
            build_context(address, commit, "nowhere", tmp_path / "cache")
        with pytest.raises(UserError):
            build_context(address, "0" * 40, "turboquant", tmp_path / "cache")
    # Kept: the same commit is not fetched again.
    assert build_context(address, commit, "turboquant", tmp_path / "cache") == files
    assert subprocess.run(["ls", "-A", str(tmp_path / "cache")], capture_output=True, text=True,
                          check=True).stdout.split() == [commit]  # fmt: skip
