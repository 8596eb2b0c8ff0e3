"""Hostile hubs, registries and repositories: their answers are bounded, and their code does not
run.
"""

import datetime as dt
import gzip
import json
import socket
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.engines import template_marks
from sparkwright.findings.user_error import UserError
from sparkwright.resolve import queries
from sparkwright.resolve.git import resolve_commit
from sparkwright.resolve.hub import ResolvedModel, resolve_model
from sparkwright.resolve.kv_cache import kv_layers
from sparkwright.resolve.lock import read_lock
from sparkwright.resolve.model_facts import facts_of
from sparkwright.resolve.registry import ask_registry
from sparkwright.tls.authority import authority, host_certificate
from tests.fuzz.drawn_values import json_values
from tests.host.proxy.test_tls import served
from tests.host.security import hostile
from tests.host.serving import Handler, listening
from tests.tables import Tables
from tests.unit.engines.derivation import repositories as derived

cases = Tables(__file__)

#: Requests to each kind of server at an address.
ASK: dict[str, Callable[[str], Any]] = {
    "registry": lambda url: ask_registry(url, "org/image", "tag", "me:secret"),
    "hub": lambda url: resolve_model(url, "org/model", "main", "hf_secret", marks=()),
    "git": lambda url: resolve_commit(url, "main"),
}
#: Program that prints each message and the growth of its memory in KiB since the first query.
RISE = """
from sparkwright.findings.user_error import UserError
from tests.unit.security.test_hostile_sources import ASK, peak
before = None
for port in sys.argv[2:]:
    try:
        ASK[sys.argv[1]]("http://127.0.0.1:" + port)
    except UserError as error:
        before = before or peak()
        print(peak() - before, error.findings[0].observed.splitlines()[0])
"""


def peak() -> int:
    """Peak memory of this process in KiB."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in status)["VmHWM"].split()[0])


class Answers(Handler):
    """Server that answers every request with ``answer`` (status, body, headers) and records it."""

    answer: tuple[int, bytes, dict[str, str]]
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        self.reply(*self.answer)


@cache
def bomb() -> bytes:
    """900 MiB of spaces in gzip, in ten equal parts, since compression takes time."""
    return gzip.compress(b" " * (90 << 20)) * 10


#: Status, body and headers by attack.
ATTACKS: dict[str, Callable[[], tuple[int, bytes, dict[str, str]]]] = {
    "gzip": lambda: (200, bomb(), {"Content-Encoding": "gzip"}),
    "lists": lambda: (200, b"[" + b"[]," * (5 << 20) + b"[]]", {}),
    "nested": lambda: (200, b'{"a":' * (1 << 20), {}),
    "length": lambda: (200, b"{}", {"Content-Length": str(10**15)}),
    "redirect": lambda: (302, b"", {"Location": "/x", "Content-Length": str(10**15)}),
}


@pytest.mark.parametrize("source", ASK)
def test_no_answer_takes_the_controllers_memory(source: str) -> None:
    answers = [(200, b"{}", {}), *(attack() for attack in ATTACKS.values())]
    with ExitStack() as stack:
        ports = [
            str(stack.enter_context(listening(Answers, answer=answer, asked=[])))
            for answer in answers
        ]
        text, _ = hostile.client(RISE, source, *ports)
    rises = [line.split(" ", 1) for line in text.splitlines()[1:]]
    for attack, (rise, message) in zip(ATTACKS, rises, strict=True):
        assert message
        assert int(rise) << 10 < 64 << 20, attack


@pytest.mark.parametrize("source", ASK)
@pytest.mark.parametrize("attack", [hostile.silent, hostile.head, hostile.going_on])
def test_no_answer_takes_the_controllers_time(
    source: str, attack: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "SECONDS", 1.0, raising=False)
    began = time.monotonic()
    with (
        hostile.serving(attack) as port,
        pytest.raises(UserError, match=r"could not be reached|more"),
    ):
        ASK[source](f"http://127.0.0.1:{port}")
    assert time.monotonic() - began < 5


@cases("status", "body", "headers")
@pytest.mark.parametrize("source", ASK)
def test_every_unusable_answer_raises_a_user_error(
    source: str, status: int, body: str, headers: dict[str, str]
) -> None:
    answer = status, body.encode("latin-1"), headers
    with listening(Answers, answer=answer, asked=[]) as port, pytest.raises(UserError) as error:
        ASK[source](f"http://127.0.0.1:{port}")
    assert len(str(error.value)) < 1500


@pytest.mark.parametrize("source", ASK)
def test_credentials_do_not_follow_a_redirect_to_another_server(source: str) -> None:
    elsewhere: list[tuple[str, str | None]] = []
    with listening(Answers, answer=(200, b"{}", {}), asked=elsewhere) as other:
        away = (302, b"", {"Location": f"http://127.0.0.1:{other}/"})
        with listening(Answers, answer=away, asked=[]) as port, pytest.raises(UserError):
            ASK[source](f"http://127.0.0.1:{port}")
    assert {credentials for _, credentials in elsewhere} == {None}


@cases("ip", "depth")
def test_the_depth_of_an_address_depends_on_its_network(ip: str, depth: int) -> None:
    assert queries._depth(ip) == depth


@cases("target")
@pytest.mark.parametrize("header", ["Location", "WWW-Authenticate"])
def test_no_server_redirects_to_a_machines_credentials(header: str, target: str) -> None:
    """The server redirects to the target, or names it as a registry's token service."""
    status, text = (302, target) if header == "Location" else (401, f'Bearer realm="{target}"')
    with (
        listening(Answers, answer=(status, b"", {header: text}), asked=[]) as port,
        pytest.raises(UserError, match=r"the server refers to|HTTP 302"),
    ):
        ASK["registry"](f"http://127.0.0.1:{port}")


@cases("private", "ip", "taken")
def test_a_server_of_the_internet_redirects_only_to_named_private_servers(
    private: list[str], ip: str, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No setting permits a redirect to this machine."""

    def connected(address: tuple[str, int], _: float) -> socket.socket:
        connection = socket.socket()
        connection.connect(("127.0.0.1", address[1]))
        return connection

    server = queries.Server("http://example.com", private)
    asking = queries.asking("x", "the hub", answer="a model", setting="hub_endpoint")
    refused = nullcontext() if taken else pytest.raises(UserError, match=rf"storage.corp \({ip}\)")
    with listening(Answers, answer=(200, b"{}", {}), asked=[]) as port:
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (ip, port))])
        monkeypatch.setattr(socket, "create_connection", connected)
        with refused as error, asking:
            server.get(f"http://storage.corp:{port}/")
    if error is not None:
        assert ("private_servers" in str(error.value)) is ip.startswith("10.")


def test_https_is_not_redirected_to_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = dt.datetime.now(dt.UTC)
    signer = authority(now, tmp_path / "ca")
    tls = served(host_certificate(signer, "server", ("127.0.0.1",), now), tmp_path)
    (tmp_path / "ca.crt").write_text(signer.pem)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.crt"))
    asked: list[tuple[str, str | None]] = []
    with listening(Answers, answer=(200, b"{}", {}), asked=asked) as port:
        target = f"http://127.0.0.1:{port}/"
        for answer in (
            (302, b"", {"Location": target}),
            (401, b"", {"WWW-Authenticate": f'Bearer realm="{target}"'}),
        ):
            secure: list[tuple[str, str | None]] = []
            with (
                listening(Answers, answer=answer, asked=secure, tls=tls) as own,
                pytest.raises(UserError),
            ):
                ASK["registry"](f"https://127.0.0.1:{own}")
            assert secure
    assert asked == []


def test_an_account_in_an_address_is_sent_to_its_server() -> None:
    asked: list[tuple[str, str | None]] = []
    references = b"0" * 40 + b"\trefs/heads/main\n"
    with listening(Answers, answer=(200, references, {}), asked=asked) as port:
        assert resolve_commit(f"http://me:a%20b@127.0.0.1:{port}/x", "main") == "0" * 40
    ((path, account),) = asked
    assert path == "/x/info/refs?service=git-upload-pack"
    assert account == f"Basic {b64encode(b'me:a b').decode()}"


COMMIT = "c0ffee" + "0" * 34
TOKENIZER = {"chat_template": "{{ messages }}"}


@contextmanager
def hub(
    files: dict[str, bytes], names: list[str] | None = None, sha: str = COMMIT
) -> Iterator[str]:
    """A hub with one repository, of these files; ``names`` are further files without content."""

    class Answer(Handler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path.startswith("/api/models/"):
                every = [*files, *(names or [])]
                siblings = [{"rfilename": name} for name in every]
                data = {"id": derived.REPOSITORY, "sha": sha, "siblings": siblings}
                body: bytes | None = json.dumps(data).encode()
            else:
                body = files.get(path.partition(f"/resolve/{COMMIT}/")[2])
            self.reply(404 if body is None else 200, body or b"")

    with listening(Answer) as port:
        yield f"http://127.0.0.1:{port}"


def asked(config: bytes, **more: bytes) -> ResolvedModel:
    """Resolve a repository with this config.json."""
    files = {"config.json": config, "tokenizer_config.json": json.dumps(TOKENIZER).encode()}
    with hub(files | {f"{name}.json": text for name, text in more.items()}) as url:
        return resolve_model(url, derived.REPOSITORY, "main", None, marks=template_marks())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (b"[" * 200_000, "config.json"),
        (b'{"a":' * 200_000, "config.json"),
        (b'{"max_position_embeddings": NaN}', "nan is not a finite number"),
        (b'{"a": -Infinity}', "-inf is not a finite number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number with too many digits"),
        (b"[]", "not a JSON object"),
        (b"\xff\xfe", "not valid JSON"),
        (b"<html>", "not valid JSON"),
    ],
    ids=range(8),
)
def test_an_invalid_configuration_is_reported_with_its_file(config: bytes, message: str) -> None:
    with pytest.raises(UserError) as error:
        asked(config)
    assert message in error.value.findings[0].observed
    assert "config.json" in error.value.findings[0].observed
    assert len(str(error.value)) < 1000


def test_an_endless_file_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    small = partial(queries.Server.get, most=1 << 20)
    monkeypatch.setattr(queries.Server, "get", lambda self, *query: small(self, *query[:2]))
    with pytest.raises(UserError, match="has more than 1 MiB"):
        asked(b" " * (2 << 20))
    with pytest.raises(UserError, match=r"generation_config.json: it has more than 1 MiB"):
        asked(b"{}", generation_config=b" " * (2 << 20))


_ANY = json_values(st.text(max_size=8))
_KEYS = [
    *derived.CONFIG, "text_config", "vision_config", "auto_map", "layer_types", "sliding_window",
    "kv_lora_rank", "qk_rope_head_dim", "full_attention_interval",
]  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(_KEYS), _ANY | st.just(10**4000) | st.just(-1), max_size=6),
    st.dictionaries(st.sampled_from(["temperature", "top_p", "top_k"]), _ANY, max_size=3),
    st.dictionaries(st.just("chat_template"), _ANY, max_size=1),
)
def test_wrong_types_count_as_missing(
    config: dict[str, Any], generation: dict[str, Any], tokenizer: dict[str, Any]
) -> None:
    """Any values result in a plan, or in a finding that names a key, without a traceback."""
    own = {**derived.CONFIG, **config}
    facts = facts_of(own, generation, tokenizer, marks=template_marks(), license=generation)
    resolved_model = ResolvedModel(
        derived.REPOSITORY, COMMIT, None, derived.repository().files, kv_layers(own), facts
    )
    with derived.on_the_hub(resolved_model):
        fleet = derived.planned()
    for problem in fleet.problems:
        assert "services.chat" in problem.subject.place
        assert len(str(problem)) < 2000


@cases("key")
def test_absurd_numbers_count_as_missing(key: str) -> None:
    config = {**derived.CONFIG, key: 10**4000}
    with derived.on_the_hub(derived.repository(config=config)):
        fleet = derived.planned()
    assert fleet.problems or derived.chat(fleet).arguments


@cases("name")
def test_names_that_point_outside_their_folder_are_refused(name: str) -> None:
    files = {"config.json": json.dumps(derived.CONFIG).encode()}
    with hub(files, [name]) as url, pytest.raises(UserError, match="leads out of its directory"):
        resolve_model(url, derived.REPOSITORY, "main", None, marks=template_marks())


@pytest.mark.parametrize("sha", ["../../x", "--upload-pack=x", "main", "C" * 40])
def test_an_invalid_commit_is_refused(sha: str) -> None:
    with hub({}, sha=sha) as url, pytest.raises(UserError, match="does not answer with a model"):
        resolve_model(url, derived.REPOSITORY, "main", None)


def test_invalid_words_reach_no_command_line() -> None:
    """Names of classes and parsers become words of a plan: a name that is not text is left out."""
    evil = "x; rm -rf /\x1b[2J $(id) --trust-remote-code"
    config = {
        **derived.CONFIG, "architectures": [evil], "model_type": evil, "auto_map": {evil: evil},
        "quantization_config": {"quant_method": evil}, "torch_dtype": evil,
    }  # fmt: skip
    facts = facts_of(config, {}, {}, marks=(), template="x", license=evil)
    assert evil not in str(facts)
    assert (facts.architecture, facts.model_type, facts.quantization) == (None, None, None)


@pytest.mark.parametrize("classes", [{"AutoConfig": "x.Y"}, {"AutoModelForCausalLM": "y--z.W"}])
def test_code_of_a_repository_is_never_enabled_automatically(classes: dict[str, str]) -> None:
    result = derived.repository(config={**derived.CONFIG, "auto_map": classes})
    with derived.on_the_hub(result):
        (problem,) = derived.planned().problems
        off = derived.chat(derived.planned({"arguments": {"trust_remote_code": False}}))
        on = derived.planned({"arguments": {"trust_remote_code": True}})
    assert "trust_remote_code" in problem.subject.place
    assert dict(off.arguments)["trust_remote_code"] is False
    refused = [violation.id for violation in on.hosts["spark-1"].violations if violation.stops]
    assert "remote-code" in refused  # no lock, and no file that a user has read


def test_a_chat_template_is_searched_and_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template would write a file if the controller rendered it with jinja."""
    proof = tmp_path / "owned"
    evil = (
        "{{ cycler.__init__.__globals__.os.system('touch " + str(proof) + "') }}"
        "{% if tools %}<tool_call>{% endif %}"
    )
    jinja2.Environment().from_string(evil).render()
    assert proof.exists()  # the attack works on plain jinja2
    proof.unlink()
    texts: list[str] = []
    compiled = jinja2.Environment.compile

    def seen(self: jinja2.Environment, source: Any, *rest: Any, **more: Any) -> Any:
        texts.append(str(source))
        return compiled(self, source, *rest, **more)

    monkeypatch.setattr(jinja2.Environment, "compile", seen)
    files = {
        "config.json": json.dumps(derived.CONFIG).encode(),
        "tokenizer_config.json": json.dumps({"chat_template": evil}).encode(),
        "chat_template.jinja": evil.encode(),
    }
    with hub(files) as url:
        model = resolve_model(url, derived.REPOSITORY, "main", None, marks=template_marks())
    with derived.on_the_hub(ResolvedModel(
        derived.REPOSITORY, COMMIT, None, derived.repository().files, model.kv, model.facts,
    )):  # fmt: skip
        service = derived.chat(derived.planned())
    assert dict(service.arguments)["tool_call_parser"] == "hermes"  # searched as text
    assert not proof.exists()
    assert not any("cycler" in text for text in texts)


@cases("setting", "name")
def test_a_model_and_a_revision_are_neither_options_nor_paths(setting: str, name: str) -> None:
    with derived.on_the_hub() as hub_was_asked:
        (problem,) = derived.planned({setting: name}).problems
    assert f"services.chat.{setting}" in problem.subject.place
    assert hub_was_asked == []


def test_contents_of_a_lock_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "fleet.lock"
    facts = {"architecture": "x y", "model_type": "--serve", "context": 10**15}
    entry = {"commit": COMMIT, "facts": facts, "files": {}}
    path.write_text(json.dumps({"images": {}, "models": {f"{derived.REPOSITORY}@main": entry}}))
    with pytest.raises(UserError) as error:
        read_lock(path)
    assert {finding.subject.key for finding in error.value.findings} == {
        f"models.{derived.REPOSITORY}@main.facts.{key}" for key in facts
    }


def test_a_token_does_not_go_over_a_network_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    tokens: list[str | None] = []

    def resolve(endpoint: str, name: str, revision: str, token: str | None, **_: Any) -> Any:
        tokens.append(token)
        return derived.repository()

    monkeypatch.setattr("sparkwright.site.fleet.resolve_model", resolve)
    derived.planned(hub_endpoint="http://mirror.lan:8000")
    derived.planned(hub_endpoint="https://mirror.lan")
    assert tokens == [None, "hf_secret"]
