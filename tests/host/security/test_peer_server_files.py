"""A member of the fleet, with a key, asks a peer server for what is not the fleet's to read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.host.fetch.fake_hub import COMMIT
from tests.host.peer_sharing import Seed

CONTAINER = "c" * 64
KEPT = b'"VLLM_API_KEY=sk-of-the-fleet"'


@pytest.fixture(autouse=True)
def kept(seed: Seed, tmp_path: Path) -> Path:
    """A file that is not the fleet's to read, also beside the directories that are served."""
    file = tmp_path / "host/docker/containers" / CONTAINER / "config.v2.json"
    file.parent.mkdir(parents=True)
    for copy in (
        file,
        seed.fetch.root / "models" / file.name,
        seed.fetch.stage.with_name("beside"),
    ):
        copy.write_bytes(KEPT)
    return file


UP = "..%2F..%2F..%2F"


@pytest.mark.parametrize(
    "path",
    [
        # As it was found: a separator within one name, and an image's hexadecimal name above.
        f"/files/models/org--model%2F{UP}docker%2Fcontainers/{CONTAINER}/config.v2.json",
        f"/files/models/..%2F..%2Fdocker%2Fcontainers/{CONTAINER}/config.v2.json",
        f"/files/models/org--model%5C..%5C..%2Fdocker%2Fcontainers/{CONTAINER}/config.v2.json",
        f"/files/models/%2Fdocker%2Fcontainers/{CONTAINER}/config.v2.json",
        f"/files/models/../docker/{CONTAINER}/config.v2.json",
        f"/files/models/%2e%2e/{CONTAINER}/config.v2.json",
        f"/files/models/.%2e/{CONTAINER}/config.v2.json",
        f"/files/models/%252e%252e%252fdocker/{CONTAINER}/config.v2.json",
        f"/files/models/%c0%ae%c0%ae%c0%af/{CONTAINER}/config.v2.json",
        f"/files/models/org--model%00/{COMMIT}/config.json",
        f"/files/models/org--model/{COMMIT}%0a/config.json",
        f"/files/models/org--model/{COMMIT}%2F..%2Fbeside/config.json",
        f"/files/models/org--model/{COMMIT}/..%2Fbeside",
        f"/files/models/org--model/{COMMIT}/../beside",
        f"/files/models/org--model/{COMMIT}/%2e%2e/beside",
        f"/files/models/org--model/{COMMIT}/%2e%2e%2fbeside",
        f"/files/models/org--model/{COMMIT}/x/../../beside",
        f"/files/models/org--model/{COMMIT}/..%5c..%5cbeside",
        f"/files/models/org--model/{COMMIT}/config.json%00.txt",
        f"/files/models/org--model/{COMMIT}//config.json",
        f"/files/models/org--model/{COMMIT}/./config.json",
        f"/files/models/org--model/{COMMIT}/",
        f"/files/models/org--model/{COMMIT}",
        f"/files/models/.staging-{COMMIT}/{COMMIT}/config.json",
        f"/files/images/..%2Fdocker%2Fcontainers%2F{CONTAINER}/config.v2.json",
        f"/files/images/{CONTAINER}/..%2F..%2F..%2Fdocker%2Fcontainers%2F{CONTAINER}",
        f"/files/keys/{'ab' * 16}",
        "/files",
        "/files/models",
        f"/files/models/org--model/{COMMIT}/{'d/' * 30}config.json",
    ],
)
@pytest.mark.parametrize("query", ["", "?ranges"])
def test_no_name_leads_out_of_the_roots(seed: Seed, path: str, query: str) -> None:
    status, body, _ = seed.get(path + query, **({} if query else {"Range": "bytes=0-9"}))
    assert (status, body) == (404, b"")


@pytest.mark.parametrize(
    ("script", "path"),
    [
        ('ln -s "$KEPT" model.safetensors', f"org--model/{COMMIT}/model.safetensors"),
        ('ln -s "$FOLDER" sub', f"org--model/{COMMIT}/sub/config.v2.json"),
        ('ln -s "$CONTAINERS" ../../evil--model', f"evil--model/{CONTAINER}/config.v2.json"),
        (f'ln -s "$FOLDER" ../{"d" * 40}', f"org--model/{'d' * 40}/config.v2.json"),
        (
            f'mkdir "$CONTAINERS/files" && cp "$KEPT" "$CONTAINERS/files" && '
            f'ln -s "$CONTAINERS" ../.staging-{"e" * 40}',
            f"org--model/{'e' * 40}/config.v2.json",
        ),
        ("mkfifo pipe", f"org--model/{COMMIT}/pipe"),
        ("mkdir folder", f"org--model/{COMMIT}/folder"),
    ],
    ids=["file", "directory", "model", "revision", "stage", "pipe", "folder"],
)
def test_no_link_is_followed_and_only_regular_files_are_given(
    seed: Seed, kept: Path, script: str, path: str
) -> None:
    folder = kept.parent
    paths = {"KEPT": str(kept), "FOLDER": str(folder), "CONTAINERS": str(folder.parent)}
    environment = {**os.environ, **paths}
    subprocess.run(["sh", "-c", script], cwd=seed.fetch.destination, env=environment, check=True)
    assert seed.get(f"/files/models/{path}", Range="bytes=0-9")[:2] == (404, b"")
    status, body, _ = seed.get(f"/files/models/{path}?ranges")
    assert status == 200
    assert b'"ranges": []' in body
    assert seed.is_well()


def test_a_stage_that_names_another_file_as_its_process_tells_nothing(
    seed: Seed, tmp_path: Path
) -> None:
    stage = seed.fetch.stage
    stage.mkdir()
    secret = tmp_path / "host/secret.json"
    secret.write_text('{"pid": 1}')
    (stage / "holder.json").symlink_to(secret)
    _, body, _ = seed.get(f"/files/models/org--model/{COMMIT}/config.json?ranges")
    assert b'"alive": false' in body
    (stage / "holder.json").unlink()
    (stage / "holder.json").write_text('{"pid": "../../etc"}')
    _, body, _ = seed.get(f"/files/models/org--model/{COMMIT}/config.json?ranges")
    assert b'"alive": false' in body


def test_what_is_the_fleets_is_given(seed: Seed) -> None:
    """The tests above would pass on a server that gives nothing."""
    path = f"/files/models/org--model/{COMMIT}/config.json"
    assert seed.get(path, Range="bytes=0-1")[:2] == (206, b"{}")
    assert seed.get(path.replace("config", "%63onfig"), Range="bytes=0-1")[:2] == (206, b"{}")


@pytest.mark.parametrize(
    "wanted",
    ["", "bytes=0-", "bytes=-1", "bytes=1-0", "bytes=0-2", "bytes=0-1,0-1", "bytes=0-9999999999"],
)
def test_only_ranges_of_the_file_are_given(seed: Seed, wanted: str) -> None:
    path = f"/files/models/org--model/{COMMIT}/config.json"
    assert seed.get(path, **({"Range": wanted} if wanted else {}))[:2] == (416, b"")


def test_no_more_than_one_piece_is_given_at_once(seed: Seed) -> None:
    with (seed.fetch.destination / "large").open("wb") as file:
        file.truncate(64 << 20)
    path = f"/files/models/org--model/{COMMIT}/large"
    assert seed.get(path, Range=f"bytes=0-{(8 << 20) - 1}")[0] == 206
    assert seed.get(path, Range=f"bytes=0-{8 << 20}")[0] == 416
