"""Any answer of a registry, a hub or a git server gives a result, or one error for the user."""

import hashlib
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.documents.bounds import Unusable
from sparkwright.findings.user_error import UserError
from sparkwright.resolve.gguf import read_header
from sparkwright.resolve.gguf_facts import facts_of_headers
from tests.fuzz.drawn_values import TEXTS, mutated
from tests.gguf_headers import gguf
from tests.host.serving import Handler, listening
from tests.unit.security.test_hostile_sources import ASK

many = settings(max_examples=settings().max_examples // 2, deadline=None)

_HEX = "c0ffee" + "0" * 34
_CONFIG = b'{"architecture": "arm64"}'
_BLOB = {"digest": f"sha256:{hashlib.sha256(_CONFIG).hexdigest()}", "size": 2}
_FILE = {"rfilename": "config.json", "size": 2, "blobId": _HEX}
_LARGE = {"rfilename": "a.safetensors", "lfs": {"size": 9, "sha256": "0" * 64, "pointerSize": 9}}
#: A valid answer of each kind of server: of a registry, of its index, and of a hub.
HONEST: list[dict[str, Any]] = [
    {"config": _BLOB, "layers": [_BLOB], "architecture": "arm64", "token": "x"},
    {"manifests": [{**_BLOB, "platform": {"os": "linux", "architecture": "arm64"}}]},
    {"id": "org/model", "sha": _HEX, "siblings": [_FILE, _LARGE], "lastModified":
     "2026-01-01T00:00:00.000Z", "cardData": {"license": "mit"}},
]  # fmt: skip
_HEADERS = st.dictionaries(
    st.sampled_from(["Content-Length", "Content-Encoding", "Transfer-Encoding", "Location",
                     "WWW-Authenticate", "X-Error-Code", "Docker-Content-Digest"]),
    st.sampled_from(["-1", "0", "3", str(10**15), "gzip", "identity", "chunked", "/x", "//x",
                     "http://[", "ftp://127.0.0.1/", "file:///etc/passwd", "http://169.254.1.1/",
                     "Basic", "Bearer", 'Bearer realm="/x"', 'Bearer realm="file:///"', "GatedRepo",
                     *(text for text in TEXTS if text.isascii() and text.isprintable())]),
    max_size=2,
)  # fmt: skip
_STATUS = st.sampled_from([200, 200, 200, 200, 204, 206, 301, 307, 401, 403, 404, 429, 500, 999])


_JSON = st.sampled_from(HONEST).flatmap(lambda data: mutated(data, st.sampled_from(TEXTS)))


def text(data: Any) -> bytes:
    """Data as JSON; an object that JSON can't represent becomes 3,000 nested lists."""
    return json.dumps(data, default=lambda _: "[deep]").replace(
        '"[deep]"', "[" * 3000 + "]" * 3000
    ).encode("utf-8", "replace")  # fmt: skip


_BODIES = st.one_of(_JSON.map(text), _JSON.map(text), st.just(_CONFIG), st.binary(max_size=99))


class _Drawn(Handler):
    """Server that returns each answer once, and from then on the last answer."""

    answers: list[tuple[int, bytes, dict[str, str]]]

    def do_GET(self) -> None:
        self.reply(*(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]))


@many
@given(
    source=st.sampled_from(sorted(ASK)),
    answers=st.lists(st.tuples(_STATUS, _BODIES, _HEADERS), min_size=1, max_size=3),
)
def test_clients_never_crash(source: str, answers: list[tuple[int, bytes, dict[str, str]]]) -> None:
    with listening(_Drawn, answers=answers) as port, suppress(UserError):
        ASK[source](f"http://127.0.0.1:{port}")


@many
@given(
    cut=st.integers(min_value=0, max_value=999),
    changes=st.dictionaries(st.integers(0, 999), st.integers(0, 255), max_size=4),
    more=st.binary(max_size=20),
)
def test_no_gguf_header_crashes_the_parser(cut: int, changes: dict[int, int], more: bytes) -> None:
    data = bytearray(gguf(order="<>"[cut % 2], more=more if cut % 3 == 0 else b""))
    for place, value in changes.items():
        data[place % len(data)] = value
    del data[len(data) - cut % 40 * (cut % 5 == 0) :]
    with suppress(Unusable):
        header = read_header(lambda at, size: bytes(data[at : at + size]), len(data))
        facts_of_headers([header], file="m.gguf", projector=(None, 0), marks=())


@pytest.mark.parametrize(("source", "data"), [("registry", HONEST[0]), ("hub", HONEST[2])])
def test_valid_answers_of_servers_are_accepted(source: str, data: Any) -> None:
    """Hypothesis draws values that resemble accepted answers."""
    with listening(_Drawn, answers=[(200, text(data), {}), (200, _CONFIG, {})]) as port:
        ASK[source](f"http://127.0.0.1:{port}")
