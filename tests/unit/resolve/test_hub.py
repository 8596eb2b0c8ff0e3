"""A hub's answer about a model is bounded before huggingface_hub reads the answer."""

import gzip
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from sparkwright.findings.user_error import UserError
from sparkwright.resolve import hub
from sparkwright.resolve.hub import PinnedFile, resolve_model
from tests.host.serving import Handler, listening
from tests.tables import Tables

cases = Tables(__file__)

COMMIT = "c0ffee" + "0" * 34
MODEL = {"id": "org/model", "sha": COMMIT, "siblings": [{"rfilename": "a.txt", "size": 3}]}


@contextmanager
def serving(
    status: int = 200, body: bytes = b"{}", headers: Mapping[str, str] | None = None
) -> Iterator[tuple[str, list[str | None]]]:
    """A server with one answer, and the Authorization header of each request."""
    authorizations: list[str | None] = []

    class Answer(Handler):
        def do_GET(self) -> None:
            authorizations.append(self.headers.get("Authorization"))
            self.reply(status, body, headers)

    with listening(Answer) as port:
        yield f"http://127.0.0.1:{port}", authorizations


def refusal(endpoint: str, token: str | None = None) -> str:
    """The message with which a model of this hub is refused."""
    with pytest.raises(UserError) as error:
        resolve_model(endpoint, "org/model", "main", token)
    return str(error.value)


def test_a_revision_becomes_a_commit_and_its_files() -> None:
    with serving(body=json.dumps(MODEL).encode()) as (endpoint, authorizations):
        model = resolve_model(endpoint, "org/model", "main", "hf_secret")
    assert (model.commit, model.files) == (COMMIT, {"a.txt": PinnedFile(3)})
    assert authorizations[0] == "Bearer hf_secret"


@cases("status", "code", "token", "message")
def test_each_refusal_of_a_hub_has_its_remedy(
    status: int, code: str, token: str | None, message: str
) -> None:
    with serving(status, headers={"X-Error-Code": code} if code else {}) as (endpoint, _):
        assert message in refusal(endpoint, token)


def test_an_unreachable_hub_is_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert f"the hub {endpoint} could not be reached" in refusal(endpoint)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"not JSON", b'{"sha": 3}', b'{"id": "a", "sha": "main"}',
     b'{"id": "a", "siblings": [3]}', b'{"a":' * 100_000, b'{"id": "a", "cardData": [1]}'],
)  # fmt: skip
def test_an_answer_without_a_models_data_is_refused(body: bytes) -> None:
    with serving(body=body) as (endpoint, _):
        assert "does not answer with a model's data" in refusal(endpoint)


def test_an_answer_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MOST_BYTES", 1 << 20)
    body = json.dumps(MODEL).encode() + b" " * (2 << 20)
    with serving(body=body) as (endpoint, _):
        assert "does not answer with a model's data" in refusal(endpoint)


def test_a_compressed_answer_is_refused() -> None:
    """Compression makes 1 MB of 1 GB of spaces."""
    body = gzip.compress(json.dumps(MODEL).encode())
    with serving(body=body, headers={"Content-Encoding": "gzip"}) as (endpoint, _):
        assert "does not answer with a model's data" in refusal(endpoint)


def test_the_token_does_not_follow_a_redirect_to_another_server() -> None:
    with serving(body=json.dumps(MODEL).encode()) as (elsewhere, authorizations):
        other = elsewhere.replace("127.0.0.1", "localhost")
        with serving(302, headers={"Location": f"{other}/api/models/x"}) as (endpoint, own):
            resolve_model(endpoint, "org/model", "main", "hf_secret")
    assert own[0] == "Bearer hf_secret"
    assert authorizations == [None]
