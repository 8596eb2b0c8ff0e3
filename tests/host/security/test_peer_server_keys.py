"""A neighbour without a key, or with what was heard on the wire, asks a peer server."""

import base64
import json
import os
import socket
import time
from contextlib import closing

import pytest

from sparkwright.host.fetch import peer_auth
from sparkwright.host.fetch.peer_server import Conversation, PeerServer
from sparkwright.host.fetch.request import PeerRoots, PeerServerRequest
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
def test_nothing_is_given_without_a_signed_challenge(seed: Seed, shown: str) -> None:
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
def test_another_key_opens_nothing(seed: Seed, key: str, others: dict[str, str]) -> None:
    assert _status(seed, PATH, key=key, others=others) == 401


def test_a_request_that_was_heard_is_worth_nothing(seed: Seed) -> None:
    connection = seed.connect()
    shown = header(challenge(connection), f"{PATH}?ranges")
    for expected in (200, 401, 401):
        connection.request("GET", f"{PATH}?ranges", headers={"Authorization": shown})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == expected
    connection.close()
    _refused(seed, shown, f"{PATH}?ranges")


def test_a_challenge_counts_on_its_own_connection_only(seed: Seed) -> None:
    item, other = seed.connect(), seed.connect()
    challenge(other)
    shown = header(challenge(item), f"{PATH}?ranges")
    other.request("GET", f"{PATH}?ranges", headers={"Authorization": shown})
    assert other.getresponse().status == 401
    item.close()
    other.close()


def test_a_signed_request_cannot_be_made_into_another(seed: Seed) -> None:
    for path, wanted in ((OTHER, "bytes=0-1"), (PATH, "bytes=1-1"), (f"{PATH}?ranges", "")):
        assert _status(seed, path, "bytes=0-1", {"Range": wanted} if wanted else {}) == 401
    for method in ("POST", "HEAD", "DELETE"):
        sent = {"Range": "bytes=0-1"}
        assert _status(seed, PATH, "bytes=0-1", sent, method=method) in (400, 401)


def test_two_readings_of_one_request_are_none(seed: Seed) -> None:
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


def test_a_runs_key_ends_with_its_time(seed: Seed) -> None:
    assert seed.get(f"{PATH}?ranges")[0] == 200
    old = time.time() - 3 * 86400
    os.utime(seed.fetch.root / "keys" / RUN, (old, old))
    connection = seed.connect()
    assert signed(connection, f"{PATH}?ranges")[0] == 401
    connection.close()
    assert seed.plain("/v2/", Authorization=BASIC)[0] == 401


@pytest.mark.parametrize("shown", ["", "Basic bm86bm8=", "Basic ???", f"Bearer {KEY}"])
def test_docker_is_given_nothing_without_its_password(seed: Seed, shown: str) -> None:
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
def test_docker_is_given_images_only(seed: Seed, path: str) -> None:
    assert seed.plain(path, Authorization=BASIC)[:2] == (404, b"")


def test_dockers_password_counts_over_loopback_only(seed: Seed) -> None:
    """It is sent in clear, which nobody hears there."""
    roots = PeerRoots(str(seed.fetch.root / "models"), str(seed.fetch.root / "images"))
    request = PeerServerRequest(str(seed.fetch.root / "keys"), roots, 60)
    for address, status in (("127.0.0.1", b"200"), ("10.0.0.7", b"404"), ("1270.0.0.1", b"404")):
        mine, its = socket.socketpair()
        with mine, its:
            mine.sendall(
                f"GET /v2/ HTTP/1.1\r\nConnection: close\r\nAuthorization: {BASIC}\r\n\r\n".encode()
            )
            Conversation(its, (address, 0), PeerServer(request, []))  # type: ignore[arg-type]
            assert mine.recv(4096).startswith(b"HTTP/1.1 " + status)


def test_an_answer_tells_no_key(seed: Seed) -> None:
    connection = seed.connect()
    _, body, headers = signed(connection, f"{PATH}?ranges")
    connection.close()
    message = f"{headers}{body!r}"
    assert not any(key in message for key in (SECRET, SERVER_KEY, KEY, DOCKER[1]))
    assert set(json.loads(body)) == {"ranges", "alive", "ended"}
