"""The lab's hub against the real clients: huggingface_hub, its `hf` command, hf_transfer."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import hf_transfer
import pytest
import requests
from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

from lab.hub.access import MEMBER_TOKEN, STRANGER_TOKEN
from lab.hub.app import link_signature
from lab.hub.miniature import Files, Miniature, Revision, build
from lab.hub.repositories import make
from lab.hub.serving import running
from lab.hub.store import Commit, Repository, Store
from lab.hub.weights import DTYPE_BYTES, random_bytes

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


def header(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        entries: dict[str, Any] = json.loads(stream.read(length))
    entries.pop("__metadata__")
    return entries


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


def test_making_again_changes_nothing(tmp_path: Path, data: Path) -> None:
    files = {path: path.stat().st_mtime_ns for path in data.rglob("*") if path.is_file()}
    make(data)
    assert files == {path: path.stat().st_mtime_ns for path in data.rglob("*") if path.is_file()}


def test_a_lost_blob_is_made_again(served: Lab) -> None:
    file = served.repository("lab/open-tiny").commits[0].file("README.md")
    assert file is not None
    blob = served.store.blob(file.sha256)
    blob.unlink()
    make(served.data)
    assert sha256(blob) == file.sha256


@pytest.mark.parametrize("name", [BODY, DRAFTER])
def test_safetensors_headers_fit_their_data(served: Lab, name: str) -> None:
    files = {
        file
        for commit in served.repository(name).commits
        for file in commit.files
        if file.path.endswith(".safetensors")
    }
    for file in files:
        blob = served.store.blob(file.sha256)
        with blob.open("rb") as stream:
            start = 8 + int.from_bytes(stream.read(8), "little")
        end = 0
        for tensor in header(blob).values():
            assert tensor["data_offsets"][0] == end
            end = tensor["data_offsets"][1]
            size = math.prod(tensor["shape"]) * DTYPE_BYTES[tensor["dtype"]]
            assert end - tensor["data_offsets"][0] == size
        assert start + end == file.size


def body_names(served: Lab, number: int) -> tuple[set[str], dict[str, str]]:
    """Return the tensor names of the body's commit `number`, and its index."""
    commit = served.repository(BODY).commits[number]
    names: set[str] = set()
    weight_map = {}
    for file in commit.files:
        blob = served.store.blob(file.sha256)
        if file.path.endswith(".safetensors"):
            names |= set(header(blob))
        if file.path == "model.safetensors.index.json":
            weight_map = json.loads(blob.read_bytes())["weight_map"]
    return names, weight_map


def test_body_layouts_are_those_of_the_card(served: Lab) -> None:
    layouts = [body_names(served, number) for number in range(4)]
    for names, weight_map in layouts:
        assert names == set(weight_map)
        assert len(set(weight_map.values())) == 9
    v1, v2, v3, _ = (names for names, _ in layouts)
    assert "model.layers.39.mlp.experts.0.gate_proj.weight_packed" in v1
    assert not any(name.startswith("model.language_model.") for name in v1)
    assert sum(name.startswith("model.language_model.visual.") for name in v2) == 333
    assert sum(name.startswith("model.visual.") for name in v3) == 333
    assert "model.language_model.layers.3.self_attn.q_proj.weight_scale" in v3
    assert "model.language_model.layers.0.linear_attn.in_proj_qkv.weight" in v3


def test_vision_fix_changed_names_and_no_data(served: Lab) -> None:
    _, v2, v3, _ = served.repository(BODY).commits
    changed = 0
    for file in v3.files:
        before = v2.file(file.path)
        assert before is not None
        if not file.path.endswith(".safetensors") or before == file:
            continue
        changed += 1
        assert before.size == file.size
        old, new = (served.store.blob(each.sha256).read_bytes() for each in (before, file))
        start = 8 + int.from_bytes(new[:8], "little")
        assert old[start:] == new[start:]
    assert 0 < changed < 9


def test_configuration_has_the_dimensions_of_the_card(served: Lab) -> None:
    config = json.loads(served.content(BODY, "config.json"))
    text = config["text_config"]
    assert config["architectures"] == ["Qwen3_5MoeForConditionalGeneration"]
    assert (text["num_hidden_layers"], text["hidden_size"], text["num_experts"]) == (40, 2048, 256)
    assert text["layer_types"].count("linear_attention") == 30
    assert config["quantization_config"]["format"] == "nvfp4-pack-quantized"
    drafter = json.loads(served.content(DRAFTER, "config.json"))
    assert drafter["architectures"] == ["DFlashDraftModel"]
    assert b"fake" in served.content(BODY, "README.md")


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


def test_tree_in_pages_with_last_commits(hub: Lab) -> None:
    entries = list(hub.api.list_repo_tree("lab/open-tiny", recursive=True, expand=True))
    assert hub.counters()["requests"]["api"] == 2
    assert [entry.path for entry in entries if not isinstance(entry, RepoFile)] == ["notes"]
    files = {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}
    assert set(files) == {file.path for file in hub.main("lab/open-tiny").files}
    first, second = hub.repository("lab/open-tiny").commits
    last = {path: file.last_commit.oid for path, file in files.items() if file.last_commit}
    assert last["notes/07.txt"] == first.id
    assert last["README.md"] == second.id


def test_tree_of_one_folder(hub: Lab) -> None:
    top = [entry.path for entry in hub.api.list_repo_tree("lab/open-tiny")]
    assert "notes" in top
    assert "notes/00.txt" not in top
    inside = list(hub.api.list_repo_tree("lab/open-tiny", "notes"))
    assert len(inside) == 60
    with pytest.raises(EntryNotFoundError):
        list(hub.api.list_repo_tree("lab/open-tiny", "nowhere"))


def test_paths_refs_and_history(hub: Lab) -> None:
    found = hub.api.get_paths_info(BODY, [SHARD, "config.json", "nothing"], expand=True)
    assert [entry.path for entry in found] == [SHARD, "config.json"]
    first, second = hub.repository("lab/open-tiny").commits
    refs = hub.api.list_repo_refs("lab/open-tiny")
    assert [(ref.name, ref.target_commit) for ref in refs.branches] == [("main", second.id)]
    assert [(ref.name, ref.target_commit) for ref in refs.tags] == [("v1.0", first.id)]
    assert hub.api.model_info("lab/open-tiny", revision="v1.0").sha == first.id
    commits = hub.api.list_repo_commits("lab/open-tiny")
    assert [commit.commit_id for commit in commits] == [second.id, first.id]


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


# --- ranges -----------------------------------------------------------------------------------

SHARD_URL = f"/{BODY}/resolve/main/{SHARD}"


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=100-199", 100, 200),
        ("bytes=1000000-", 1_000_000, None),
        ("bytes=-7", -7, None),
        ("bytes=100-999999999", 100, None),
    ],
)
def test_one_range(hub: Lab, asked: str, start: int, end: int | None) -> None:
    content = hub.content(BODY, SHARD)
    answer = hub.get(SHARD_URL, Range=asked)
    assert answer.status_code == 206
    assert answer.content == content[start:end]
    first, last, _ = slice(start, end).indices(len(content))
    assert answer.headers["Content-Range"] == f"bytes {first}-{last - 1}/{len(content)}"


def test_several_ranges(hub: Lab) -> None:
    content = hub.content(BODY, SHARD)
    answer = hub.get(SHARD_URL, Range="bytes=0-9, 2000000-2000009")
    assert answer.status_code == 206
    boundary = answer.headers["Content-Type"].partition("boundary=")[2].encode()
    parts = answer.content.split(b"--" + boundary)
    bodies = [part.partition(b"\r\n\r\n")[2][:10] for part in parts[1:-1]]
    assert bodies == [content[:10], content[2_000_000:2_000_010]]


def test_ranges_that_cannot_be_met(hub: Lab) -> None:
    size = len(hub.content(BODY, SHARD))
    answer = hub.get(SHARD_URL, Range=f"bytes={size}-")
    assert answer.status_code == 416
    assert answer.headers["Content-Range"] == f"bytes */{size}"
    assert hub.get(SHARD_URL, Range="lines=1-2").status_code == 200
    assert hub.get(SHARD_URL, Range="bytes=5-2").status_code == 200
    assert hub.get(SHARD_URL, **{"Range": "bytes=0-1", "If-Range": '"old"'}).status_code == 200


def test_unsigned_and_expired_links_are_refused(hub: Lab) -> None:
    path = f"/cdn/{BODY}/{BODY_COMMIT}/{SHARD}"

    def status(expires: int, signature: str) -> int:
        answer = hub.get(f"{path}?Expires={expires}&Signature={signature}", Range="bytes=0-0")
        return answer.status_code

    later = int(time.time()) + 60
    assert status(later, link_signature(path, str(later))) == 206
    assert status(later + 1, link_signature(path, str(later))) == 403
    assert status(1, link_signature(path, "1")) == 403
    assert hub.get(path).status_code == 403


# --- refusals ---------------------------------------------------------------------------------


def test_what_is_not_there(hub: Lab) -> None:
    with pytest.raises(RepositoryNotFoundError) as missing:
        hub.api.model_info("lab/missing")
    assert missing.value.response.status_code == 401
    with pytest.raises(RepositoryNotFoundError) as missing:
        hub.api.model_info("lab/missing", token=MEMBER_TOKEN)
    assert missing.value.response.status_code == 404
    with pytest.raises(RevisionNotFoundError):
        hub.api.model_info(BODY, revision="0" * 40)
    with pytest.raises(EntryNotFoundError):
        get_hf_file_metadata(f"{hub.url}/{BODY}/resolve/main/model.safetensors", token=False)


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


def test_bad_token_is_refused_on_public_repositories_too(hub: Lab) -> None:
    with pytest.raises(HfHubHTTPError) as refused:
        hub.api.model_info(BODY, token="hf_wrong")
    assert refused.value.response.status_code == 401
    assert not isinstance(refused.value, RepositoryNotFoundError)
    assert hub.api.whoami(token=MEMBER_TOKEN)["name"] == "lab-member"
    with pytest.raises(HfHubHTTPError):
        hub.api.whoami(token="hf_wrong")


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


def received(answer: Answer) -> int:
    """Return how many bytes come before the connection breaks."""
    count = 0
    try:
        for chunk in answer.iter_content(1):
            count += len(chunk)
    except requests.exceptions.RequestException:
        return count
    pytest.fail("the connection did not break")


def test_drop_at_an_offset_bites_only_the_range_that_has_it(hub: Lab) -> None:
    hub.fault(match="/cdn/*", drop_at=500_000, times=1)
    assert len(hub.get(SHARD_URL, Range="bytes=0-499999").content) == 500_000
    url = hub.url + SHARD_URL
    answer = requests.get(url, headers={"Range": "bytes=499000-"}, stream=True, timeout=10)
    assert received(answer) == 1000
    assert len(hub.get(SHARD_URL, Range="bytes=499000-").content) > 1000


def test_one_corrupt_byte(hub: Lab) -> None:
    content = hub.content(BODY, SHARD)
    hub.fault(match=f"/cdn/*/{SHARD}", corrupt_at=1_500_000, times=1)
    flipped = bytearray(content)
    flipped[1_500_000] ^= 0xFF
    assert hub.get(SHARD_URL).content == flipped
    assert hub.get(SHARD_URL).content == content


def test_status_a_number_of_times(hub: Lab) -> None:
    hub.fault(match="*/config.json", status=503, times=2, headers={"Retry-After": "1"})
    url = f"/{BODY}/resolve/main/config.json"
    answers = [hub.get(url) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].headers["Retry-After"] == "1"


def test_truncated_wrong_etag_no_ranges(hub: Lab) -> None:
    content = hub.content(BODY, SHARD)
    hub.fault(match="/cdn/*", truncate=1000, times=1)
    assert hub.get(SHARD_URL).content == content[:1000]
    hub.fault(match="/cdn/*", no_ranges=True, times=1)
    answer = hub.get(SHARD_URL, Range="bytes=0-9")
    assert (answer.status_code, len(answer.content)) == (200, len(content))
    hub.fault(match="*/resolve/*", etag="wrong", times=1)
    head = requests.head(hub.url + SHARD_URL, timeout=10)
    assert head.headers["X-Linked-ETag"] == '"wrong"'
    assert requests.head(hub.url + SHARD_URL, timeout=10).headers["X-Linked-ETag"] != '"wrong"'


def test_rate_and_sleep(hub: Lab) -> None:
    hub.fault(match="/cdn/*", rate=1_000_000)
    start = time.monotonic()
    hub.get(SHARD_URL, Range="bytes=0-299999")
    assert 0.25 < time.monotonic() - start < 1.0
    requests.delete(f"{hub.url}/control", timeout=10)
    hub.fault(match="/api/*", sleep=0.3, times=1)
    start = time.monotonic()
    hub.get(f"/api/models/{BODY}")
    assert 0.3 <= time.monotonic() - start < 1.0


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ({"match": "*"}, "exactly one"),
        ({"status": 503, "rate": 5}, "exactly one"),
        ({"statuss": 503}, "unknown key 'statuss'"),
        ({"status": "503"}, "must be of type int"),
        ({"drop_after": -1}, "must not be negative"),
        ([], "a fault is a JSON object"),
    ],
)
def test_wrong_orders_are_refused(hub: Lab, order: object, said: str) -> None:
    answer = requests.post(f"{hub.url}/control", json=order, timeout=10)
    assert answer.status_code == 400
    assert said in answer.json()["error"]
    assert hub.get("/control").json() == {"faults": []}


def test_counters(hub: Lab) -> None:
    hub.get(SHARD_URL, Range="bytes=0-99")
    state = hub.counters()
    assert state["requests"] == {"cdn": 1, "resolve": 1}
    assert state["repositories"][BODY]["files"][SHARD] == {"requests": 1, "bytes": 100}
    assert (state["bytes"], state["streams"], state["peak_streams"]) == (100, 0, 1)
    requests.delete(f"{hub.url}/control/counters", timeout=10)
    assert hub.counters()["bytes"] == 0
