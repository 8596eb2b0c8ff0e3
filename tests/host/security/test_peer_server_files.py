"""A member of the fleet, with a key, asks a peer server for what is not the fleet's to read."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.host.fetch.fake_hub import COMMIT
from tests.host.peer_sharing import Seed
from tests.libyaml import safe_load

CONTAINER = "c" * 64
TABLES = safe_load(Path(__file__).with_name("tables.yaml").read_text())
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


def _paths(name: str) -> Any:
    """A table, with the names that are made here."""
    text = json.dumps(TABLES[name])
    return json.loads(text.replace("{commit}", COMMIT).replace("{container}", CONTAINER))


@pytest.mark.parametrize("path", _paths("peer_paths"))
@pytest.mark.parametrize("query", ["", "?ranges"])
def test_no_name_leads_out_of_the_roots(seed: Seed, path: str, query: str) -> None:
    status, body, _ = seed.get(path + query, **({} if query else {"Range": "bytes=0-9"}))
    assert (status, body) == (404, b"")


LINKS = _paths("peer_links")


@pytest.mark.parametrize(("script", "path"), LINKS.values(), ids=LINKS)
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
