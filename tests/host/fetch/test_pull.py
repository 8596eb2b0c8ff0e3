"""Images: requests, blobs of a private registry, and a Docker that only records commands."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host.fetch import messages, request
from sparkwright.host.fetch.messages import Failed
from sparkwright.host.fetch.request import (
    BuildFile,
    ContentCheck,
    ExpectedContents,
    FetchFile,
    FetchRequest,
    ImageBuild,
    PeerServerRequest,
    PullRequest,
    document,
)
from sparkwright.operations.lib import runtime
from tests import docker_api
from tests.host.fetch.conftest import HOST, Fetch
from tests.host.peer_sharing import DOCKER, RUN, SERVER_KEY
from tests.host.programs import program
from tests.host.serving import Handler, listening
from tests.tables import Tables, merged

LAYER = bytes(range(251)) * 9000  # about 2.2 MB
MANIFEST = json.dumps({"layers": ["..."]}).encode()
ACCOUNT = "robot:its-password"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Registry:
    """A registry with one private image. ``lives`` is the number of uses of a token."""

    lives: int = 10**6
    port: int = 0
    cdn_port: int = 0
    good: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    seen_at_cdn: list[str | None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Handler(Handler):
    registry: Registry
    cdn: bool

    def do_GET(self) -> None:
        given = self.headers.get("Authorization")
        registry = self.registry
        if self.cdn:
            registry.seen_at_cdn.append(given)
            self._content(LAYER)
        elif self.path.startswith("/token?"):
            wanted = "Basic " + base64.b64encode(ACCOUNT.encode()).decode()
            if given != wanted or "scope=repository" not in self.path:
                self.reply(401)
                return
            with registry.lock:
                registry.tokens += 1
                token = f"token-{registry.tokens}"
                registry.good[f"Bearer {token}"] = registry.lives
            self.reply(200, json.dumps({"token": token}).encode())
        elif not self._spend(given):
            realm = f'Bearer realm="{registry.endpoint}/token",service="here",'
            self.reply(401, b"", {"WWW-Authenticate": realm + 'scope="repository:a/b:pull"'})
        elif "/manifests/" in self.path:
            self._content(MANIFEST)
        else:
            path = f"http://127.0.0.1:{registry.cdn_port}/signed"
            self.reply(307, b"", {"Location": path})

    do_HEAD = do_GET

    def _spend(self, given: str | None) -> bool:
        with self.registry.lock:
            left = self.registry.good.get(given or "", 0)
            if left > 0 and given:
                self.registry.good[given] = left - 1
            return left > 0

    def _content(self, content: bytes) -> None:
        asked = self.headers.get("Range")
        if not asked:
            self.reply(200, content)
            return
        start, end = (int(number) for number in asked.removeprefix("bytes=").split("-"))
        part = content[start : end + 1]
        self.reply(206, part, {"Content-Range": f"bytes {start}-{end}/{len(content)}"})


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()
    with (
        listening(_Handler, registry=made, cdn=False) as made.port,
        listening(_Handler, registry=made, cdn=True) as made.cdn_port,
    ):
        yield made


def blobs(fetch: Fetch, registry: Registry, account: str | None = ACCOUNT) -> tuple[int, str]:
    file = fetch.root / "account"
    file.write_text(account or "")
    contents = {digest(LAYER): LAYER, digest(MANIFEST): MANIFEST}
    return fetch.run(
        source="registry",
        endpoint=registry.endpoint,
        repo="a/b/c",
        revision=digest(MANIFEST),
        destination=str(fetch.root / "images" / digest(MANIFEST)),
        manifests=[digest(MANIFEST)],
        files=[
            {"path": name, "size": len(content), "sha256": name, "blob_id": None}
            for name, content in contents.items()
        ],
        token_file=str(file),
        allow_token_over_http=True,
    )


def test_an_account_gives_access_to_a_private_image_and_is_not_sent_to_the_cdn(
    fetch: Fetch, registry: Registry
) -> None:
    code, output = blobs(fetch, registry)
    assert code == 0, output
    path = fetch.root / "images" / digest(MANIFEST)
    assert (path / digest(LAYER)).read_bytes() == LAYER
    assert (path / digest(MANIFEST)).read_bytes() == MANIFEST
    assert registry.seen_at_cdn
    assert set(registry.seen_at_cdn) == {None}


def test_a_token_that_expires_midway_is_replaced(fetch: Fetch, registry: Registry) -> None:
    registry.lives = 4
    code, output = blobs(fetch, registry)
    assert code == 0, output
    assert registry.tokens > 2


@pytest.mark.parametrize(
    ("account", "remedy"), [(None, "docker login"), ("robot:wrong", "docker login|may not read it")]
)
def test_without_the_right_account_the_remedy_is_reported(
    fetch: Fetch, registry: Registry, account: str | None, remedy: str
) -> None:
    code, output = blobs(fetch, registry, account)
    assert code == 1
    assert any(part in output for part in remedy.split("|"))
    assert ACCOUNT not in output
    assert not (fetch.root / "images" / digest(MANIFEST)).exists()


NAME, BASE = "example.org/model:sha256-1", "example.org/base:1"
SOURCE = f"127.0.0.1:1/a/b/c@sha256:{digest(MANIFEST)}"


@dataclass
class Docker:
    """Docker's socket and command: their answers, and the command's log."""

    place: Path
    info: dict[str, Any] = field(default_factory=dict)

    def has_layer(self, driver: str) -> None:
        """Put the image's layer into Docker's own store."""
        drivers = self.place / "root/image" / driver
        expected = drivers / "distribution/diffid-by-digest/sha256" / digest(LAYER)
        expected.parent.mkdir(parents=True)
        expected.write_text(f"sha256:{'d' * 64}")
        (drivers / "layerdb/sha256" / ("d" * 64)).mkdir(parents=True)

    def commands(self) -> list[str]:
        log = self.place / "commands"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    item = Docker(tmp_path / "docker")
    (item.place / "root/image/overlay2").mkdir(parents=True)
    command = program(
        item.place / "bin",
        "docker",
        f'echo "$@" >> {item.place}/commands\n'
        f'case "$*" in *"steps.py check") [ ! -e {item.place}/broken ] || '
        "{ echo no module named x >&2; exit 1; };; esac\n"
        f'[ "$1" != build ] || cp -a "$4" {item.place}/context\n'
        f'[ "$1" != --config ] || cp "$2/config.json" {item.place}/account\n'
        f'[ "$3" != pull -o ! -e {item.place}/full ] || {{ echo no space left >&2; exit 1; }}\n',
    )
    monkeypatch.setenv("PATH", str(command.parent), prepend=":")
    root = {"DockerRootDir": str(item.place / "root"), "Driver": "overlay2"}
    docker_api.serve(item.place, monkeypatch, lambda _: {**root, **item.info})
    return item


@pytest.fixture
def request_(registry: Registry, tmp_path: Path) -> PullRequest:
    (tmp_path / "account").write_text(ACCOUNT)
    (tmp_path / RUN).write_text(f"{SERVER_KEY}\n")
    (tmp_path / "state").mkdir()
    fetch = FetchRequest(
        source="registry",
        endpoint=registry.endpoint,
        repo="a/b/c",
        revision=digest(MANIFEST),
        destination=str(tmp_path / "images" / digest(MANIFEST)),
        state_dir=str(tmp_path / "state"),
        files=tuple(FetchFile(digest(item), len(item), digest(item)) for item in (LAYER, MANIFEST)),
        manifests=(digest(MANIFEST),),
        downloader="http",
        token_file=str(tmp_path / "account"),
        allow_token_over_http=True,
        headroom=0,
        retries=1,
        backoff=0.05,
    )
    return PullRequest(NAME, SOURCE, str(tmp_path / RUN), (digest(LAYER),), fetch)


def pull(request: PullRequest) -> tuple[int, str, dict[str, Any]]:
    """Run the task. Return the exit code, the last line on stderr, and progress.json."""
    state = Path(request.fetch.state_dir)
    (state / "request.json").write_text(document(request))
    arguments = [sys.executable, "-I", "-S", str(HOST / "fetch.py"), "--task", "pull"]
    done = subprocess.run(
        [*arguments, str(state / "request.json")],
        capture_output=True, text=True, check=False, env=os.environ, timeout=60,
    )  # fmt: skip
    progress: dict[str, Any] = json.loads((state / "progress.json").read_text())
    return done.returncode, done.stderr.splitlines()[-1], progress


def test_an_image_is_fetched_pulled_from_this_host_and_named(
    docker: Docker, request_: PullRequest
) -> None:
    code, output, progress = pull(request_)
    assert code == 0, output
    account = base64.b64encode(":".join(DOCKER).encode()).decode()
    config = json.loads((docker.place / "account").read_text())
    assert config == {"auths": {"127.0.0.1:1": {"auth": account}}}
    pulled, *others = docker.commands()
    assert pulled.endswith(f" pull --quiet {SOURCE}")
    assert others == [f"tag {SOURCE} {NAME}", f"image rm --no-prune {SOURCE}"]
    assert DOCKER[1] not in pulled
    assert (progress["state"], progress["message"]) == ("done", output)
    assert progress["bytes_done"] == len(LAYER) + len(MANIFEST)
    assert not Path(request_.fetch.destination).exists()


def test_parts_stay_for_peers(docker: Docker, request_: PullRequest) -> None:
    assert pull(replace(request_, keep=True))[0] == 0
    assert (Path(request_.fetch.destination) / digest(LAYER)).read_bytes() == LAYER


def test_layers_that_docker_has_are_not_fetched(
    docker: Docker, registry: Registry, request_: PullRequest
) -> None:
    docker.has_layer("overlay2")
    code, output, progress = pull(request_)
    assert code == 0, output
    assert progress["bytes_total"] == len(MANIFEST)
    assert registry.seen_at_cdn == []


def test_layers_that_are_in_containerds_store_are_not_fetched(
    docker: Docker, registry: Registry, request_: PullRequest
) -> None:
    """Images that an older version's Docker left in its own store do not count."""
    docker.info = {
        "Driver": "overlayfs",
        "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
        "Containerd": {"Address": "/var/run/docker/containerd/containerd.sock"},
    }
    docker.has_layer("overlayfs")
    assert pull(request_)[2]["bytes_total"] == len(LAYER) + len(MANIFEST)
    registry.seen_at_cdn.clear()
    content = "root/containerd/daemon/io.containerd.content.v1.content/blobs/sha256"
    blob = docker.place / content / digest(LAYER)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(LAYER)
    code, output, progress = pull(request_)
    assert code == 0, output
    assert progress["bytes_total"] == len(MANIFEST)
    assert registry.seen_at_cdn == []


def test_a_build_gets_the_proxy(
    docker: Docker, request_: PullRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docker's command line has the variable's name, and not its value."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    files = {"Dockerfile": BuildFile(base64.b64encode(b"FROM base\n").decode())}
    pull(replace(request_, build=ImageBuild(BASE, files)))
    (built,) = [line for line in docker.commands() if line.startswith("build")]
    assert "--build-arg HTTPS_PROXY --build-arg NO_PROXY" in built
    assert "proxy.example" not in built


def test_a_derived_image_is_tagged_once_its_checks_pass(
    docker: Docker, request_: PullRequest
) -> None:
    """The image's steps run in containers without network and capabilities; after a failed check,
    no image remains.
    """
    derived = replace(request_, name="sparkwright.local/r:sha256-1")
    files = {"Dockerfile": BuildFile(""), "steps.py": BuildFile("")}
    code, output, _ = pull(replace(derived, build=ImageBuild(BASE, files, steps=True)))
    assert code == 0, output
    unproven = "sparkwright.local/unproven-r:sha256-1"
    _, _, applied, built, checked, named, removed, _ = docker.commands()
    for run in (applied, checked):
        assert run.startswith("run --rm --network none ")
        assert "--read-only" in run
        assert "--cap-drop ALL" in run
        assert "--gpus" not in run
    assert applied.endswith(f" {BASE} -B /run/sparkwright/steps.py apply")
    assert built.startswith(f"build --network none --tag {unproven} ")
    assert checked.endswith(f" {unproven} -B /run/sparkwright/steps.py check")
    assert named == f"tag {unproven} {derived.name}"
    assert removed == f"image rm {unproven}"
    (docker.place / "commands").unlink()
    (docker.place / "broken").touch()
    code, output, _ = pull(replace(derived, build=ImageBuild(BASE, files, steps=True)))
    assert code == 1
    assert "sparkwright.local/r failed: no module named x." in output
    assert f"tag {unproven} {derived.name}" not in docker.commands()
    assert f"image rm {unproven}" in docker.commands()


def test_a_failed_command_is_reported(docker: Docker, request_: PullRequest) -> None:
    (docker.place / "full").touch()
    code, output, progress = pull(request_)
    assert (code, output) == (1, "Docker rejects the image: no space left")
    assert (progress["state"], progress["message"]) == ("failed", output)
    assert len(docker.commands()) == 3
    (docker.place / "full").unlink()
    (docker.place / "bin/docker").write_text(
        '#!/bin/sh\n[ "$3" = pull ] || { echo no such image >&2; exit 1; }\n'
    )
    assert pull(request_)[1] == "Docker cannot name the image: no such image."
    (docker.place / "docker.sock").unlink()
    assert "Docker does not answer. Start Docker" in pull(request_)[1]


def test_a_failed_fetch_is_reported(
    docker: Docker, registry: Registry, request_: PullRequest
) -> None:
    fetch = replace(request_.fetch, endpoint="http://127.0.0.1:9")
    code, output, progress = pull(replace(request_, fetch=fetch))
    assert code == 1
    assert "http://127.0.0.1:9 is unreachable" in output
    assert (progress["state"], progress["message"]) == ("failed", output)


EXPECTED = ExpectedContents(
    "modelopt",
    (
        ContentCheck("layout", "it can't be loaded", absent="model.layers"),
        ContentCheck("eos", "it never stops", file="g.json", key="eos", contains=(50, "x")),
    ),
)
FETCH = FetchRequest(
    endpoint="https://registry.example",
    repo="a/b/c",
    revision="a" * 64,
    destination="/opt/images/x",
    state_dir="/var/lib/x",
    files=(FetchFile("b" * 64, 5, "b" * 64),),
    source="registry",
    manifests=("b" * 64,),
    limit=1e8,
    expect=EXPECTED,
    adopt=("/models",),
)
PULL = PullRequest(
    name="image:tag",
    source="127.0.0.1:1/a/b/c@sha256:a",
    token_file="/token",
    layers=("b" * 64,),
    fetch=FETCH,
    build=ImageBuild("base:tag", {"Dockerfile": BuildFile("eA=="), "run": BuildFile("eA==", True)}),
)
FILE = {"path": "x", "size": 1, "blob_id": "0" * 40}
HUB = {"source": "hub", "repo": "org/x", "revision": "c" * 40, "files": [FILE]}
PEER_SERVER = PeerServerRequest("/keys", "/models", "/images", 900)
REQUESTS = {
    "empty fetch": (FetchRequest, {}), "empty peer server": (PeerServerRequest, {}),
    "fetch": (FetchRequest, asdict(FETCH)), "hub": (FetchRequest, asdict(FETCH) | HUB),
    "pull": (PullRequest, asdict(PULL)), "peer server": (PeerServerRequest, asdict(PEER_SERVER)),
}  # fmt: skip
cases = Tables(__file__)


def written(folder: Path, document: Any) -> Path:
    path = folder / "request.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("sent", [FETCH, PULL, PEER_SERVER])
def test_the_host_reads_the_controllers_request(tmp_path: Path, sent: Any) -> None:
    assert request.read(type(sent), written(tmp_path, json.loads(request.document(sent)))) == sent


@cases("name", "changes", "message")
def test_a_wrong_request_causes_one_message_that_names_the_key(
    tmp_path: Path, name: str, changes: Any, message: str
) -> None:
    kind, document = REQUESTS[name]
    with pytest.raises(Failed) as caught:
        request.read(kind, written(tmp_path, merged(document, changes)))
    assert message in str(caught.value)


def test_every_task_of_the_program_runs_in_the_layout_of_a_host(tmp_path: Path) -> None:
    """The files include every module that a task imports, also at run time."""
    for path, text in runtime._program().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    document = written(tmp_path, {})
    for task in ("run", "pull", "peer-server"):
        arguments = runtime.command(str(tmp_path), task, str(document))
        done = subprocess.run(
            [sys.executable, *arguments[1:]], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr.startswith("The request")) == (1, True), done.stderr
    late = "import sparkwright.host.fetch.job, sparkwright.host.fetch.worker"
    script = f"import sys; sys.path.append({str(tmp_path)!r}); {late}"
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True, cwd="/")


def test_every_message_has_a_text_and_every_text_is_used() -> None:
    sources = "".join(path.read_text() for path in messages.MESSAGES.parent.glob("*.py"))
    names = set(re.findall(r'(?:[Ff]ailed|Temporary|text)\(\s*"(\w+)"', sources))
    rules = messages._TEXTS["refusals"].values()
    names |= {name for source in rules for _, name in source}
    names |= {f"request_{key}" for key in (*request._PATTERNS, *request._PINNED["hub"])}
    names |= set(re.findall(r'^        "(file_\w+)":', sources, re.MULTILINE))
    names |= {f"not_a_{source}" for source in request._PINNED}
    assert names == messages._TEXTS.keys() - {"refusals"}
