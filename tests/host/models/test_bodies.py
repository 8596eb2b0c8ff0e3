"""Fields of bodies: the model's name, and the member that makes a stream end with its usage."""

import io
import json
import tempfile
import time
from typing import Any

import pytest

from sparkwright.host.models import bodies
from sparkwright.host.models.bodies import Fields
from sparkwright.host.models.refusal import Refused
from tests.tables import Tables

cases = Tables(__file__)

_FORM = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="model"\r\n\r\n%b\r\n'
    b'--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper\r\n'
    b'--x\r\nContent-Disposition: form-data; name="stream"\r\n\r\ntrue\r\n--x--\r\n'
)


def _apart(data: bytes, boundary: str = "") -> Fields:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        return bodies.parse_apart(file, boundary)


@pytest.mark.parametrize("parse", [bodies.parse, _apart])
@cases("text")
def test_the_outermost_object_names_the_model(parse: Any, text: str) -> None:
    fields = parse(text.encode(), "")
    assert fields.model == "m"
    assert text[fields.end :].strip() == "}"


@pytest.mark.parametrize("parse", [bodies.parse, _apart])
@cases("text", "message", more=[
    ('{"model": "a", "stream": true, "stream_options": {"%s": true}}' % ("A" * 2000),
     "stream_options are too long"), ('{"model": "a", "n": ' + "9" * 5000 + "}", "not JSON."),
    ('{"model": "a", "messages": ' + "[" * 200_000, "nested too deeply"),
])  # fmt: skip
def test_an_ambiguous_or_broken_body_is_refused(parse: Any, text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        parse(text.encode("latin-1"), "")


_STREAM: dict[str, Any] = {"stream": True}


@cases("members", "options")
def test_usage_is_requested_if_the_client_omits_the_option(members: Any, options: Any) -> None:
    text = json.dumps({"model": "m", **members, "text": "ü😀"}, ensure_ascii=False).encode() + b" "
    fields = bodies.parse(text, "")
    assert bool(fields.member) == (options is not None)
    if fields.member:
        sent = json.loads(text[: fields.end] + fields.member.encode() + b"}")
        options["include_usage"] = True
        assert sent == {"model": "m", **members, "text": "ü😀", "stream_options": options}


@pytest.mark.parametrize("parse", [bodies.parse, _apart])
def test_a_form_may_have_its_model_after_a_file(parse: Any) -> None:
    file = b'\r\n--y\r\nContent-Disposition: form-data; name="model"\r\n\r\nno'
    assert parse(_FORM % file, "x").model == "whisper"
    for data in (b"", b"--x", b"--x--", b"--x\r\n", b"preamble" + _FORM % b"", (_FORM % b"")[:-90]):
        with pytest.raises(Refused, match="form"):
            parse(data, "x")
    part = b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\na\r\n'
    for data, message in ((part * 2, "names 2 models"), (part * 2000, "too many parts")):
        with pytest.raises(Refused, match=message):
            parse(data + b"--x--", "x")
    assert bodies.boundary('Multipart/Form-Data; charset=utf-8; boundary="a b"') == "a b"
    assert bodies.boundary("application/json; boundary=x") == ""


@cases("head", more=[
    f'X: {"x" * 2000}\r\nContent-Disposition: form-data; name="model"',
    f'Content-Type: {"x" * 2000}\r\nContent-Disposition: form-data; name="model"',
])  # fmt: skip
def test_no_header_of_a_form_hides_a_second_model(head: str) -> None:
    with pytest.raises(Refused, match="form has a part with invalid headers"):
        bodies.parse(b"--x\r\n%b\r\n\r\nlarge\r\n" % head.encode() + _FORM % b"", "x")


def test_headers_of_common_clients_are_parsed() -> None:
    for head in (
        b'Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name="model"',
        b"Content-Disposition: form-data; name=model",
        b'Content-Disposition: form-data; name="model"\r\nContent-Length: 1',
    ):
        file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"'
        file += b"; filename*=utf-8''a.wav\r\nContent-Type: audio/wav\r\n\r\nA\r\n"
        assert bodies.parse(file + b"--x\r\n%b\r\n\r\nm\r\n--x--" % head, "x").model == "m"


def test_a_form_with_two_boundaries_is_refused() -> None:
    with pytest.raises(Refused, match="one boundary"):
        bodies.boundary("multipart/form-data; boundary=a; boundary=b")


def test_large_bodies_leave_room_for_small_bodies() -> None:
    room = bodies.Room()

    def fill(key: str, whole: int) -> None:
        for _ in range(bodies.OF_A_KEY >> 20):
            room.hold(key, 1 << 20, whole)
        room.hold(key, 1 << 20, whole)

    for key in "abcdefgh":
        with pytest.raises(Refused, match="Too many large requests"):
            fill(key, 64 << 20)
    for key in "abcdefghi":
        room.hold(key, 1 << 20, 1 << 20)
    with pytest.raises(Refused, match="Too many large requests"):
        fill("i", 1 << 20)


def test_a_bounded_process_parses_large_bodies() -> None:
    image = b'{"text": "\\ud83d\\ude00", "image": "%b", "model": "m"}' % (b"A" * (20 << 20))
    for data in (image, b'{"list": [%b1], "model": "m"}' % (b"1," * 60_000)):
        assert bodies.small(io.BytesIO(data)) is None
        assert _apart(data).model == "m"
    assert _apart(_FORM % (b"A" * (20 << 20)), "x").model == "whisper"
    assert bodies.small(io.BytesIO(b"word, " * 8000))
    before = time.monotonic()
    lists = b'{"model": "m", "list": [%b1]}' % (b"[]," * ((64 << 20) // 3))
    with pytest.raises(Refused, match="too much time or memory"):
        _apart(lists)
    assert time.monotonic() - before < 20
