"""The real llama-server with the lab's GGUF files, started with the files rendered for a host."""

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.hub import tiny_gguf
from lab.real_engine import build, local
from lab.real_engine.llama_server import DRAFTING, LLAMA_SERVER, PROGRAM, RECIPE
from lab.real_engine.tree import inside
from sparkwright.engines import engine as engine_named
from sparkwright.host.smoke import check, deep
from tests.engine.captures import LLAMA_SERVER as CAPTURES
from tests.engine.captures import counters, keep, series, shape
from tests.engine.conftest import KEY, Running, render, started

Result = subprocess.CompletedProcess[str]

pytestmark = pytest.mark.timeout(600)
OWN = engine_named("llamacpp")
#: The build of the captures: a later build has other arguments and routes.
BUILD = "b11669"
TABLE = OWN.parser.tables.table(BUILD)
MESSAGE = {"messages": [{"role": "user", "content": "Hello"}], "temperature": 0}
#: Deep checks of the protocol. Other checks judge meaning, and fail with a model of one word.
PROTOCOL = {"health", "aliases", "key", "completion", "stream", "context-limit", "prefix-cache"}
#: Deprecated arguments: the program accepts any value and does not parse the value.
DEPRECATED = ["defrag_thold"]
#: Script that runs the program once for each line of a file, and prints the first line of output.
#: `--version` ends the program after it has parsed the earlier arguments.
TRY = f"""\
while IFS= read -r line; do
    first=$(eval "{PROGRAM} $line --version" 2>&1 </dev/null | head -n 1)
    printf '%s\\n' "$first"
done </models/lab
"""


@pytest.fixture(scope="module")
def llama() -> build.Engine:
    """Only the build uses the engine's small tree, so the tests do not hold the lab."""
    return build.ensure(LLAMA_SERVER)


@pytest.fixture(scope="module", params=[RECIPE, DRAFTING])
def server(
    llama: build.Engine, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Running]:
    """Start llama-server with a recipe of the lab; wait until it is healthy."""
    site = tmp_path_factory.mktemp("site")
    rendered = render(site, llama, recipe=request.param, hardening="strict")
    with started(tmp_path_factory.mktemp("engine"), llama, rendered) as running:
        yield running


def run(llama: build.Engine, *arguments: str, models: Path | None = None) -> Result:
    command = inside(llama.root, arguments, [(models, "/models/lab")] if models else [])
    return subprocess.run(
        command, env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=120, check=False,
    )  # fmt: skip


def printed(llama: build.Engine, path: Path, lines: list[str]) -> list[str]:
    """First line that the program prints for each line of arguments."""
    path.write_text("".join(f"{line}\n" for line in lines))
    result = run(llama, "/bin/sh", "-c", TRY, models=path).stdout.splitlines()
    assert len(result) == len(lines)
    return result


def long(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def test_the_program_is_the_build_of_the_captures(llama: build.Engine) -> None:
    assert f"build {BUILD[1:]}," in run(llama, PROGRAM, "--version").stdout
    text = run(llama, PROGRAM, "--help").stdout
    assert text == keep("help.txt", text, CAPTURES)


def test_the_program_accepts_every_argument_of_the_table(
    llama: build.Engine, tmp_path: Path
) -> None:
    lines = []
    for name, argument in TABLE.arguments.items():
        flag = argument.kind == "flag"
        lines.append(long(name) if flag else f"{long(name)} {(*argument.choices, '1')[0]}")
        lines += [f"--no-{name.replace('_', '-')}"] if argument.negatable else []
    result = printed(llama, tmp_path / "lines", lines)
    assert [line for line in result if "invalid argument" in line] == []
    (unknown,) = printed(llama, tmp_path / "lines", ["--no-such-thing 1"])
    assert unknown == "error: invalid argument: --no-such-thing"


def test_program_and_table_refuse_the_same_arguments(llama: build.Engine, tmp_path: Path) -> None:
    """The arguments have a text instead of a number, or an unknown choice."""
    judged = {
        name: f"{long(name)} no-such-value"
        for name, argument in TABLE.arguments.items()
        if argument.kind in ("int", "float") or argument.choices
    }
    assert len(judged) > 50
    result = printed(llama, tmp_path / "lines", [*judged.values()])
    taken = [name for name, line in zip(judged, result, strict=True) if "error" not in line]
    assert taken == DEPRECATED


def test_the_smoke_test_passes_on_the_real_engine(server: Running) -> None:
    answer = check.main((server.request,))["tiny"]
    print(f"healthy after {server.boot_seconds:.1f} s")
    assert [item for item in answer.checks if not item.ok] == []
    assert {"health", "models", "key", "generation"} <= {item.name for item in answer.checks}


def test_the_deep_smoke_test_uses_the_engines_protocol(server: Running) -> None:
    """The engine's answers are one word: a request that checks the protocol passes, and a request
    that checks the meaning fails.
    """
    checks = {item.name: item for item in deep.run(server.deep).checks}
    print(*checks.values(), sep="\n")
    assert {name for name, item in checks.items() if item.verdict == "passed"} >= PROTOCOL


def test_answers_equal_the_captures(server: Running) -> None:
    """Status and shape of answers to clients' requests; the file has the requests, too."""
    captured = json.loads((CAPTURES / "answers.json").read_text())
    for name, item in captured.items():
        if (item["method"], item["path"]) not in OWN.routes.clients or server.request.speculates:
            continue
        body = item.get("request")
        status, text = server.ask(item["method"], item["path"], body, key=item["key"])
        assert status == item["status"], (name, text)
        answer = json.loads(text)
        assert shape(answer) == shape(item["body"]), name
        assert answer.get("choices") == item["body"].get("choices"), name


def test_routes_that_require_the_key_equal_the_capture(server: Running) -> None:
    captured = json.loads((CAPTURES / "routes.json").read_text())
    for route, (without_key, *_) in captured.items():
        method, path = route.split()
        status, _ = server.ask(method, path, {} if method == "POST" else None, key=False)
        assert status == without_key, route
    open_routes = {route.split()[1] for route, codes in captured.items() if codes[0] != 401}
    assert {path for _, path in OWN.routes.inference if path in open_routes} == {*OWN.routes.open}


def test_metrics_equal_the_capture_and_have_neutral_names(server: Running) -> None:
    server.ask("POST", "/v1/chat/completions", {**MESSAGE, "max_tokens": 64})
    status, text = server.ask("GET", "/metrics")
    assert status == 200
    name = "metrics_speculation.txt" if server.request.speculates else "metrics.txt"
    assert series(text) == series(keep(name, text, CAPTURES))
    values = counters(text)
    assert {*OWN.metrics.values()} <= {*values}
    drafted = values["llamacpp:spec_decode_num_draft_tokens_total"]
    accepted = values["llamacpp:spec_decode_num_accepted_tokens_total"]
    assert (0 < accepted <= drafted) if server.request.speculates else drafted == 0


# The test ends the engine.
def test_sigterm_ends_the_engine_at_once(server: Running) -> None:
    start = time.monotonic()
    assert local.stop(server.process) == 0
    assert time.monotonic() - start < 10
    assert KEY not in server.log.read_text(errors="replace")


def test_a_model_given_only_by_name_is_served(llama: build.Engine, tmp_path: Path) -> None:
    """The recipe is derived from the header of the files, with the lab's image, the only image for
    a CPU.
    """
    own: dict[str, Any] = {"model": f"{tiny_gguf.REPOSITORY}:F16", "engine": "llamacpp"}
    own["arguments"] = {"mmproj_auto": False}  # the lab's projector of pictures is not a model
    (tmp_path / "engine").mkdir()
    rendered = render(tmp_path, llama, **own, image="lab-llama-server")
    with started(tmp_path / "engine", llama, rendered) as running:
        answer = check.main((running.request,))["tiny"]
    assert [item for item in answer.checks if not item.ok] == []


def damaged(models: Path) -> None:
    """Damaged copies of the lab's files, which no program can load."""
    for miniature in tiny_gguf.MINIATURES:
        for name, content in miniature.newest().items():
            path = models / miniature.id.partition("/")[2] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else b"".join(content()))
    own = models / "tiny-qwen3-GGUF"
    whole, head = (own / "tiny-qwen3-Q8_0.gguf").read_bytes(), b"\x08\0\0\0\x05\0\0\0\0\0\0\0qwen"
    part = own / "F16/tiny-qwen3-F16-00001-of-00002.gguf"
    for name, content in {
        "truncated.gguf": whole[:60000],
        "truncated-header.gguf": whole[:2000],
        "page.gguf": b"<html>sign in</html>",
        "architecture.gguf": whole.replace(head + b"3", head + b"9", 1),
        f"split/{part.name}": part.read_bytes(),
    }.items():
        (models / "bad" / name).parent.mkdir(parents=True, exist_ok=True)
        (models / "bad" / name).write_bytes(content)


def test_failures_equal_the_captures(llama: build.Engine, tmp_path: Path) -> None:
    """Exit codes and lines; the file has the arguments, too."""
    damaged(tmp_path)
    with socket.socket() as neighbour:
        neighbour.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        neighbour.bind(("127.0.0.1", 0))
        neighbour.listen()
        port = str(neighbour.getsockname()[1])
        captured = json.loads((CAPTURES / "failures.json").read_text())
        for name, item in captured.items():
            command = [PROGRAM, "--port", port if name == "port_taken" else "0"]
            command += ["--threads", "2", *item["arguments"]]
            if "memory" in item:
                command = ["/usr/bin/prlimit", f"--as={item['memory']}", *command]
            done = run(llama, *command, models=tmp_path)
            assert done.returncode == item["exit"], (name, done.stdout)
            assert errors(done.stdout.splitlines()) == errors(item["log"]), name


def errors(log: list[str]) -> list[str]:
    """Unique lines of a log without times, numbers and code locations."""
    lines: dict[str, Any] = {}
    for line in log:
        text = re.sub(r"^[\d.]+ (?=[EW] )", "", line.strip())
        if text.startswith(("E ", "error")):
            lines[re.sub(r"\d{4,}(\.\d+)?", "", text)] = None
    return [*lines]
