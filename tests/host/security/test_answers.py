"""Servers that answer without end: bounded memory, bounded time, a clear error; and answers and log
lines of hostile code in a container."""

import hashlib
import time
from pathlib import Path

import pytest

from sparkwright.engines import metric_names
from sparkwright.host import second_boot
from sparkwright.host.lib import journal
from sparkwright.host.service import SmokeRequest
from tests.host.fetch.conftest import RUNTIME
from tests.host.security import hostile
from tests.host.serving import Handler, listening

#: A Python with its modules has some 30 MiB; an answer's bytes exist twice for a moment.
LITTLE = 120 << 20
ASK = """
from sparkwright.host.lib.http import NoAnswer, Server
server = Server("127.0.0.1", int(sys.argv[1]))
try:
    {call}
    print("answered")
except NoAnswer as error:
    print(type(error).__name__, error)
"""
CALLS = {
    "ask": 'server.ask("GET", "/metrics", timeout=20)',
    "events": 'list(server.events("/v1/completions", {}, timeout=20))',
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("attack", [hostile.body, hostile.head, hostile.line, hostile.going_on])
def test_an_endless_answer_of_a_service_is_cut(attack: object, call: str) -> None:
    with hostile.serving(attack) as port:
        text, peak = hostile.client(ASK.format(call=CALLS[call]), str(port))
    assert text.startswith("NoAnswer ")
    assert any(name in text for name in ("more than", "got more than 100 headers")), text
    assert peak < LITTLE


def test_a_service_that_trickles_forever_is_abandoned() -> None:
    with hostile.serving(hostile.silent) as port:
        began = time.monotonic()
        call = 'server.ask("GET", "/metrics", timeout=1)'
        text, _ = hostile.client(ASK.format(call=call), str(port))
    assert text.startswith("Late ")
    assert time.monotonic() - began < 10


def test_an_endless_answer_of_docker_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "docker.sock"
    code = (
        "import os\nos.environ['DOCKER_HOST'] = 'unix://' + sys.argv[1]\n"
        "from sparkwright.host.lib import docker\nprint(docker.containers())"
    )
    with hostile.serving(hostile.body, path):
        text, peak = hostile.client(code, str(path))
    assert (text, peak < LITTLE) == ("[]", True)


def test_an_endless_answer_of_a_proxy_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    code = (
        "from sparkwright.host.proxy import place\n"
        "try:\n    place.ask(sys.argv[1], 'show stat')\n"
        "except OSError as error:\n    print(error)"
    )
    with hostile.serving(hostile.body, path):
        text, peak = hostile.client(code, str(path))
    assert text == "the answer has more than 8 MiB"
    assert peak < LITTLE


def test_endless_output_of_a_command_is_cut() -> None:
    """`docker logs` of a container that writes one line endlessly."""
    code = (
        "from sparkwright.host.lib.processes import run\nprint(run('cat', '/dev/zero', timeout=30))"
    )
    text, peak = hostile.client(code)
    assert "cat: more than 64 MiB of output" in text
    assert peak < 2 * LITTLE


REQUEST = """
from threading import Event
from dataclasses import replace
from sparkwright.host.fetch.request import FetchFile, FetchRequest
from sparkwright.host.fetch.messages import Failed
request = FetchRequest(
    endpoint="http://127.0.0.1:" + sys.argv[1], repo="org/model", revision=sys.argv[2],
    destination=sys.argv[3] + "/destination", state_dir=sys.argv[3], retries=0, stall=10,
)
try:
    {call}
    print("answered")
except Failed as error:
    print("Failed", error)
"""
HUB = "from sparkwright.host.fetch.sources import Hub; Hub(request, None, Event()).check()"
REGISTRY = (
    "from sparkwright.host.fetch.sources import Registry; "
    'Registry(replace(request, source="registry"), None, Event()).check()'
)
FILE = (
    "from pathlib import Path; from sparkwright.host.fetch.holes import Part; "
    "from sparkwright.host.fetch.sources import Location; "
    "from sparkwright.host.fetch.ranges import Limit, RangeFetch; "
    'file = FetchFile("model.safetensors", 1 << 20, "0" * 64); '
    'part = Part(Path(sys.argv[3], "part"), file, lambda *_: None); part.prepare(mapped=False); '
    "fetch = RangeFetch(request, None, part, Event(), Limit(None)); "
    'fetch.run(Location(request.endpoint + "/x", {{}}), 1)'
)


HEADS = (hostile.head, hostile.line, hostile.going_on)
#: A manifest is requested by HEAD, whose answer has no body; a token's answer has the body below.
ATTACKS = [
    *((HUB, attack) for attack in (hostile.body, *HEADS)),
    *((REGISTRY, attack) for attack in HEADS),
    *((FILE, attack) for attack in (hostile.body, *HEADS)),
]


@pytest.mark.parametrize(("call", "attack"), ATTACKS)
def test_an_endless_answer_of_a_source_is_cut(call: str, attack: object, tmp_path: Path) -> None:
    with hostile.serving(attack) as port:
        code = REQUEST.format(call=call.format())
        arguments = (str(port), hashlib.sha1(b"").hexdigest(), str(tmp_path))
        text, peak = hostile.client(code, *arguments, path=str(RUNTIME))
    assert text.startswith("Failed "), text
    assert peak < 2 * LITTLE


def test_an_endless_answer_of_a_token_service_is_cut(tmp_path: Path) -> None:
    with hostile.serving(hostile.body) as port:
        call = (
            "from sparkwright.host.fetch.sources import Registry; "
            'Registry(request, None, Event())._token({"realm": request.endpoint + "/token"}, None)'
        )
        arguments = (str(port), "0" * 40, str(tmp_path))
        text, peak = hostile.client(REQUEST.format(call=call), *arguments)
    assert "answers without a token (the answer has more than 1 MiB)" in text
    assert peak < LITTLE


class Engine(Handler):
    """Server that answers every request with one text."""

    text: str

    def do_GET(self) -> None:
        self.reply(200, self.text.encode())


@pytest.mark.parametrize(
    ("blocks", "read"),
    [("30539", 30539), ("²", None), ("9" * 5000, None), ("-1", None), ("", None), ("None", None)],
)
def test_no_count_of_blocks_aborts_a_switch(tmp_path: Path, blocks: str, read: int | None) -> None:
    secrets = tmp_path / "secrets.env"
    secrets.write_text("VLLM_API_KEY=k\n")
    text = f'vllm:cache_config_info{{num_gpu_blocks="{blocks}"}} 1.0\n'
    with listening(Engine, text=text) as port:
        gate = SmokeRequest("a", "a.service", "127.0.0.1", port, str(secrets), ("a",), 1, 1,
                            metric_names=metric_names())  # fmt: skip
        assert second_boot.kv_blocks(gate) == read


def test_no_line_of_a_log_keeps_a_gate_busy() -> None:
    """A journal's lines have 48 KiB at most, and the gate reads 400 of them."""
    lines = [
        "1." * 24_000,
        "a." * 24_000,
        "a" * 48_000,
        "Error" * 9_000,
        "error:" * 8_000,
        ": " * 24_000,
    ]
    began = time.monotonic()
    journal.cause(lines * 80)
    assert time.monotonic() - began < 10
