"""A broken file from an engine is a fault of its model, and does not end the checking program."""

import base64
import json
import struct

import pytest

from sparkwright.host.lib.faults import Fault
from sparkwright.host.lib.http import Answer
from sparkwright.host.lib.kinds import judged

HEAD = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBBI", 13, b"IHDR", 64, 64, 8, 2, 0, 0, 0, 0)


@pytest.mark.parametrize("rest", [b"\x00", b"\x00" * 9, struct.pack(">I4s", 1 << 31, b"IDAT")])
def test_a_broken_picture_is_a_fault(rest: bytes) -> None:
    picture = base64.b64encode(HEAD + rest).decode()
    answer = Answer(200, json.dumps({"data": [{"b64_json": picture}]}).encode())
    with pytest.raises(Fault):
        judged("image", answer)
