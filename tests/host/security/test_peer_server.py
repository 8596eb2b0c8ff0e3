"""Clients of a peer server: a neighbour without a key, or with recorded traffic; and a member of
the fleet, with a key, that requests files which the fleet may not read.
"""

import base64
import json
import os
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host.fetch import peer_auth
from sparkwright.host.fetch.peer_server import Conversation, PeerServer
from sparkwright.host.fetch.request import PeerServerRequest
from tests.host.fetch.fake_hub import COMMIT
from tests.host.peer_sharing import (
    DOCKER,
    KEY,
    RUN,
    SECRET,
    SERVER_KEY,
    Seed,
    challenge,
    header,
    signed,
)
from tests.libyaml import safe_load

PATH = f"/files/models/org--model/{COMMIT}/config.json"
OTHER = f"/files/models/org--model/{COMMIT}/other.json"
BASIC = "Basic " + base64.b64encode(":".join(DOCKER).encode()).decode()


def _status(
    seed: Seed, path: str, wanted: str = "", headers: dict[str, str] | None = None,
    method: str = "GET", key: str = KEY, others: dict[str, str] | None = None,
) -> int:  # fmt: skip
    """Answer to a request that shows the signature of a GET of PATH."""
    with closing(seed.connect()) as connection:
        shown = header(challenge(connection), PATH, wanted, key, **(others or {}))
        connection.request(method, path, headers={"Authorization": shown, **(headers or {})})
        return connection.getresponse().status


def _refused(seed: Seed, shown: str, path: str = PATH, **headers: str) -> None:
    assert seed.plain(path, Authorization=shown, **headers)[:2] == (401, b"")


@pytest.mark.parametrize(
    "shown",
    [
        "", "Bearer no", f"Bearer {SECRET}", f"Bearer {SERVER_KEY}", "Basic bm86bm8=", "Basic ???",
        BASIC, "Sparkwright", "Sparkwright run= peer= nonce= mac=",
        header("", PATH), header("0" * 32, PATH),
    ],
)  # fmt: skip
def test_no_file_is_served_without_a_signed_challenge(seed: Seed, shown: str) -> None:
    for path in (PATH, f"{PATH}?ranges", "/files", "/x"):
        status, body, headers = seed.plain(path, **({"Authorization": shown} if shown else {}))
        assert (status, body) == (401, b"")
        assert "Sparkwright-Answer" not in headers


@pytest.mark.parametrize(
    ("key", "others"),
    [
        ("0" * 64, {}),
        (SERVER_KEY, {}),
        (peer_auth.docker_password(SERVER_KEY), {}),
        # The key of another peer, of another server and of another run.
        (peer_auth.peer_key(SERVER_KEY, "other"), {}),
        (peer_auth.peer_key(peer_auth.server_key(SECRET, RUN, "other"), "leech"), {}),
        (KEY, {"peer": "other"}),
        (KEY, {"run": "ef" * 16}),
        (KEY, {"run": "../keys/ab"}),
    ],
)
def test_a_foreign_key_gets_no_file(seed: Seed, key: str, others: dict[str, str]) -> None:
    assert _status(seed, PATH, key=key, others=others) == 401


def test_a_replayed_request_is_refused(seed: Seed) -> None:
    connection = seed.connect()
    shown = header(challenge(connection), f"{PATH}?ranges")
    for expected in (200, 401, 401):
        connection.request("GET", f"{PATH}?ranges", headers={"Authorization": shown})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == expected
    connection.close()
    _refused(seed, shown, f"{PATH}?ranges")


def test_a_challenge_is_valid_only_on_its_own_connection(seed: Seed) -> None:
    item, other = seed.connect(), seed.connect()
    challenge(other)
    shown = header(challenge(item), f"{PATH}?ranges")
    other.request("GET", f"{PATH}?ranges", headers={"Authorization": shown})
    assert other.getresponse().status == 401
    item.close()
    other.close()


def test_a_signed_request_cannot_be_changed_into_another_request(seed: Seed) -> None:
    for path, wanted in ((OTHER, "bytes=0-1"), (PATH, "bytes=1-1"), (f"{PATH}?ranges", "")):
        assert _status(seed, path, "bytes=0-1", {"Range": wanted} if wanted else {}) == 401
    for method in ("POST", "HEAD", "DELETE"):
        sent = {"Range": "bytes=0-1"}
        assert _status(seed, PATH, "bytes=0-1", sent, method=method) in (400, 401)


def test_an_ambiguous_request_is_refused(seed: Seed) -> None:
    for extra in (
        "Authorization: Sparkwright x", "Range: bytes=0-0", "Transfer-Encoding: chunked",
        "Content-Length: 5", " folded", "Bad Name: x", "Host: a\r\nHost: b",
    ):  # fmt: skip
        with socket.create_connection(("127.0.0.1", seed.port), 5) as raw:
            raw.sendall(
                f"GET {PATH} HTTP/1.1\r\nRange: bytes=0-1\r\nAuthorization: x\r\n"
                f"{extra}\r\n\r\n".encode()
            )
            raw.settimeout(5)
            text = b""
            while block := raw.recv(4096):
                text += block
                if b"\r\n\r\n" in text:
                    break
        assert not text.startswith(b"HTTP/1.1 2"), extra
    assert seed.is_well()


def test_a_runs_key_expires(seed: Seed) -> None:
    assert seed.get(f"{PATH}?ranges")[0] == 200
    old = time.time() - 3 * 86400
    os.utime(seed.fetch.root / "keys" / RUN, (old, old))
    connection = seed.connect()
    assert signed(connection, f"{PATH}?ranges")[0] == 401
    connection.close()
    assert seed.plain("/v2/", Authorization=BASIC)[0] == 401


@pytest.mark.parametrize("shown", ["", "Basic bm86bm8=", "Basic ???", f"Bearer {KEY}"])
def test_docker_gets_no_file_without_its_password(seed: Seed, shown: str) -> None:
    for path in ("/v2/", f"/v2/a/b/manifests/sha256:{'a' * 64}"):
        assert seed.plain(path, Authorization=shown)[0] == 401
    assert seed.plain("/v2/", Authorization=BASIC)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/v2/x/blobs/sha256:../../keys/ab", "/v2/x/blobs/sha256:..%2F..%2Fkeys",
        f"/v2/x/blobs/sha256:{'a' * 63}%2F", f"/v2/..%2F/blobs/sha256:{'a' * 64}",
        f"/v2/x/other/sha256:{'a' * 64}", "/v2/x/blobs/config.json",
    ],
)  # fmt: skip
def test_docker_can_fetch_only_images(seed: Seed, path: str) -> None:
    assert seed.plain(path, Authorization=BASIC)[:2] == (404, b"")


def test_dockers_password_is_valid_only_over_loopback(seed: Seed) -> None:
    """The password is sent in clear over loopback, where no other user listens."""
    keys, models, images = (str(seed.fetch.root / name) for name in ("keys", "models", "images"))
    request = PeerServerRequest(keys, models, images, 60)
    for address, status in (("127.0.0.1", b"200"), ("10.0.0.7", b"404"), ("1270.0.0.1", b"404")):
        mine, its = socket.socketpair()
        with mine, its:
            mine.sendall(
                f"GET /v2/ HTTP/1.1\r\nConnection: close\r\nAuthorization: {BASIC}\r\n\r\n".encode()
            )
            Conversation(its, (address, 0), PeerServer(request, []))  # type: ignore[arg-type]
            assert mine.recv(4096).startswith(b"HTTP/1.1 " + status)


def test_an_answer_reveals_no_key(seed: Seed) -> None:
    connection = seed.connect()
    _, body, headers = signed(connection, f"{PATH}?ranges")
    connection.close()
    message = f"{headers}{body!r}"
    assert not any(key in message for key in (SECRET, SERVER_KEY, KEY, DOCKER[1]))
    assert set(json.loads(body)) == {"ranges", "alive", "ended"}


CONTAINER = "c" * 64
TABLES = safe_load(Path(__file__).with_name("tables.yaml").read_text())
KEPT = b'"VLLM_API_KEY=sk-of-the-fleet"'


@pytest.fixture(autouse=True)
def kept(seed: Seed, tmp_path: Path) -> Path:
    """A file that the fleet may not read, also beside the served directories."""
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
    """A table of the YAML file, with the names of this module's commit and container."""
    text = json.dumps(TABLES[name])
    return json.loads(text.replace("{commit}", COMMIT).replace("{container}", CONTAINER))


@pytest.mark.parametrize("path", _paths("peer_paths"))
@pytest.mark.parametrize("query", ["", "?ranges"])
def test_no_path_points_outside_the_served_directories(seed: Seed, path: str, query: str) -> None:
    status, body, _ = seed.get(path + query, **({} if query else {"Range": "bytes=0-9"}))
    assert (status, body) == (404, b"")


LINKS = _paths("peer_links")


@pytest.mark.parametrize(("script", "path"), LINKS.values(), ids=LINKS)
def test_no_link_is_followed_and_only_regular_files_are_served(
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


def test_a_stage_with_a_foreign_process_file_reveals_no_content(seed: Seed, tmp_path: Path) -> None:
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


def test_files_of_the_fleet_are_served(seed: Seed) -> None:
    """The tests above would also pass with a server that refuses every request."""
    path = f"/files/models/org--model/{COMMIT}/config.json"
    assert seed.get(path, Range="bytes=0-1")[:2] == (206, b"{}")
    assert seed.get(path.replace("config", "%63onfig"), Range="bytes=0-1")[:2] == (206, b"{}")


@pytest.mark.parametrize(
    "wanted",
    ["", "bytes=0-", "bytes=-1", "bytes=1-0", "bytes=0-2", "bytes=0-1,0-1", "bytes=0-9999999999"],
)
def test_only_ranges_of_the_file_are_served(seed: Seed, wanted: str) -> None:
    path = f"/files/models/org--model/{COMMIT}/config.json"
    assert seed.get(path, **({"Range": wanted} if wanted else {}))[:2] == (416, b"")


def test_at_most_one_piece_is_served_at_once(seed: Seed) -> None:
    with (seed.fetch.destination / "large").open("wb") as file:
        file.truncate(64 << 20)
    path = f"/files/models/org--model/{COMMIT}/large"
    assert seed.get(path, Range=f"bytes=0-{(8 << 20) - 1}")[0] == 206
    assert seed.get(path, Range=f"bytes=0-{8 << 20}")[0] == 416
