"""The lab's hub against the real clients: huggingface_hub, its `hf` command, hf_transfer."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import hf_transfer
import pytest
import requests
from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    RepositoryNotFoundError,
)

from lab.hub.access import MEMBER_TOKEN, STRANGER_TOKEN
from lab.hub.miniature import Files, Miniature, Revision, build
from lab.hub.repositories import make
from lab.hub.serving import running
from lab.hub.store import Commit, Repository, Store
from lab.hub.weights import random_bytes

BODY = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"
DRAFTER = "z-lab/Qwen3.6-35B-A3B-DFlash"
SHARD = "model-00001-of-00009.safetensors"
# The same on every machine; they change only with what lab/hub makes.
BODY_COMMIT = "7113055e88243402e70f170964d148cf3dc9119c"
DRAFTER_COMMIT = "7c1458e4a6a64ecb437b8009127979bb9e38f242"

Answer = requests.Response


class Lab:
    """A running hub and what lies in it."""

    def __init__(self, url: str, data: Path) -> None:
        self.url = url
        self.data = data
        self.api = HfApi(endpoint=url, token=False)
        self.store = Store(data)

    def repository(self, name: str) -> Repository:
        found = self.store.load(name)
        assert found is not None
        return found

    def main(self, name: str) -> Commit:
        return self.repository(name).commits[-1]

    def content(self, name: str, path: str) -> bytes:
        file = self.main(name).file(path)
        assert file is not None
        return self.store.blob(file.sha256).read_bytes()

    def get(self, path: str, **headers: str) -> Answer:
        return requests.get(self.url + path, headers=headers, timeout=10)

    def fault(self, **order: Any) -> dict[str, Any]:
        answer = requests.post(f"{self.url}/control", json=order, timeout=10)
        answer.raise_for_status()
        state: dict[str, Any] = answer.json()
        return state

    def counters(self) -> dict[str, Any]:
        state: dict[str, Any] = self.get("/control/counters").json()
        return state


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


@pytest.fixture
def hub(served: Lab) -> Iterator[Lab]:
    yield served
    requests.delete(f"{served.url}/control", timeout=10)
    requests.delete(f"{served.url}/control/counters", timeout=10)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_folder(folder: Path, commit: Commit, store: Store) -> None:
    """Compare a downloaded folder with a commit: the same names, each with its sha256."""
    found = {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and ".cache" not in path.relative_to(folder).parts
    }
    assert found == {file.path for file in commit.files}
    for file in commit.files:
        assert sha256(folder / file.path) == file.sha256
        assert sha256(store.blob(file.sha256)) == file.sha256


# --- the miniature repositories ---------------------------------------------------------------


def test_commit_ids_are_the_same_on_every_machine(served: Lab) -> None:
    assert served.main(BODY).id == BODY_COMMIT
    assert served.main(DRAFTER).id == DRAFTER_COMMIT


# --- metadata ---------------------------------------------------------------------------------


def test_model_info_has_sizes_and_hashes(hub: Lab) -> None:
    info = hub.api.model_info(BODY, files_metadata=True)
    commit = hub.main(BODY)
    assert info.sha == commit.id
    assert info.last_modified is not None
    assert info.last_modified.isoformat() == "2026-06-19T16:45:00+00:00"
    found = {
        entry.rfilename: (entry.size, entry.blob_id, entry.lfs and entry.lfs.sha256)
        for entry in info.siblings or []
    }
    assert found == {
        file.path: (file.size, file.blob_id, file.sha256 if file.lfs else None)
        for file in commit.files
    }


def test_blob_ids_are_those_of_git(hub: Lab, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(hub.content(BODY, "config.json"))
    command = ["git", "hash-object", "--no-filters", "config.json"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    file = hub.main(BODY).file("config.json")
    assert file is not None
    assert run.stdout.strip() == file.blob_id


def test_old_revision_by_its_commit(hub: Lab) -> None:
    oldest = hub.repository(DRAFTER).commits[0]
    info = hub.api.model_info(DRAFTER, revision=oldest.id)
    assert info.sha == oldest.id
    assert info.last_modified is not None
    assert info.last_modified.date().isoformat() == "2026-04-16"


@pytest.mark.parametrize("origin", ["served", "apart"])
def test_file_metadata(origin: str, request: pytest.FixtureRequest) -> None:
    # A client follows a redirect within the hub's origin, and stops at one that leaves it.
    lab: Lab = request.getfixturevalue(origin)
    for path in (SHARD, "config.json"):
        file = lab.main(BODY).file(path)
        assert file is not None
        found = get_hf_file_metadata(f"{lab.url}/{BODY}/resolve/main/{path}", token=False)
        assert found.commit_hash == BODY_COMMIT
        assert found.etag == (file.sha256 if path == SHARD else file.blob_id)
        assert found.size == file.size
        assert requests.get(found.location, timeout=10).content == lab.content(BODY, path)
        assert ("/cdn/" if file.lfs else "/resolve/") in found.location
        assert ("localhost" in found.location) == (origin == "apart" and file.lfs)
        # What leads to Xet storage is in the hub's own answer, and lost where the CDN's is taken.
        assert (found.xet_file_data is not None) == (origin == "apart" and file.lfs)


# --- downloads --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [BODY, DRAFTER])
def test_snapshot_of_main(hub: Lab, name: str, tmp_path: Path) -> None:
    snapshot_download(name, local_dir=tmp_path, endpoint=hub.url, token=False)
    check_folder(tmp_path, hub.main(name), hub.store)


def test_snapshot_of_an_old_commit(hub: Lab, tmp_path: Path) -> None:
    oldest = hub.repository(DRAFTER).commits[0]
    snapshot_download(
        DRAFTER, revision=oldest.id, local_dir=tmp_path, endpoint=hub.url, token=False
    )
    check_folder(tmp_path, oldest, hub.store)
    assert oldest.files != hub.main(DRAFTER).files


def test_hf_transfer_takes_a_file_in_ranges(hub: Lab, tmp_path: Path) -> None:
    target = tmp_path / "shard"
    url = f"{hub.url}/{BODY}/resolve/{BODY_COMMIT}/{SHARD}"
    hf_transfer.download(url, str(target), 8, 256 << 10)
    assert target.read_bytes() == hub.content(BODY, SHARD)
    assert hub.counters()["statuses"]["206"] > 4


def test_hf_command_with_its_environment(hub: Lab, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.url,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": MEMBER_TOKEN,
    }
    hf = str(Path(sys.executable).parent / "hf")
    target = tmp_path / "model"
    command = [hf, "download", "lab/gated-tiny", "model.safetensors", "--local-dir", str(target)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
    downloaded = (target / "model.safetensors").read_bytes()
    assert downloaded == hub.content("lab/gated-tiny", "model.safetensors")


# --- refusals ---------------------------------------------------------------------------------


def test_private_repository(hub: Lab) -> None:
    for token in (False, STRANGER_TOKEN):
        with pytest.raises(RepositoryNotFoundError):
            hub.api.model_info("lab/private-tiny", token=token)
    assert hub.api.model_info("lab/private-tiny", token=MEMBER_TOKEN).private is True


def test_gated_repository(hub: Lab, tmp_path: Path) -> None:
    # Its listing is open, its files are not.
    assert hub.api.model_info("lab/gated-tiny").gated == "manual"
    url = f"{hub.url}/lab/gated-tiny/resolve/main/model.safetensors"
    for token, status in ((False, 401), (STRANGER_TOKEN, 403)):
        with pytest.raises(GatedRepoError) as refused:
            get_hf_file_metadata(url, token=token)
        assert refused.value.response.status_code == status
    assert get_hf_file_metadata(url, token=MEMBER_TOKEN).commit_hash is not None


def test_token_stays_with_the_hub(apart: Lab, tmp_path: Path) -> None:
    path = hf_hub_download(
        "lab/gated-tiny",
        "model.safetensors",
        cache_dir=tmp_path,
        endpoint=apart.url,
        token=MEMBER_TOKEN,
    )
    assert Path(path).read_bytes() == apart.content("lab/gated-tiny", "model.safetensors")
    assert apart.counters()["tokens_at_cdn"] == 0
    link = get_hf_file_metadata(
        f"{apart.url}/lab/gated-tiny/resolve/main/model.safetensors", token=MEMBER_TOKEN
    ).location
    requests.get(link, headers={"Authorization": f"Bearer {MEMBER_TOKEN}"}, timeout=10)
    assert apart.counters()["tokens_at_cdn"] == 1


# --- faults and counters ----------------------------------------------------------------------


def test_client_goes_on_after_a_dropped_connection(hub: Lab, tmp_path: Path) -> None:
    # The client writes pieces of 10 MB, so it goes on at a multiple of that.
    kept, drop, size = 10 << 20, 11 << 20, 12 << 20

    def files(_size: int) -> Files:
        return {"model.safetensors": partial(random_bytes, "large", size)}

    revision = Revision("First", "2026-05-01T08:00:00.000Z", files)
    build(Miniature("lab/large", 0, (revision,)), hub.store, scale=1.0, recipe="")
    hub.fault(match="/cdn/*/model.safetensors", drop_after=drop, times=1)
    path = hf_hub_download(
        "lab/large", "model.safetensors", local_dir=tmp_path, endpoint=hub.url, token=False
    )
    assert Path(path).read_bytes() == hub.content("lab/large", "model.safetensors")
    assert hub.get("/control").json()["faults"][0]["hits"] == 1
    counted = hub.counters()["repositories"]["lab/large"]
    assert counted["bytes"] == drop + size - kept
