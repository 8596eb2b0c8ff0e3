"""Requests as the controller writes them, and wrong ones."""

import json
import re
import subprocess
import sys
from dataclasses import asdict
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
    PeerRoots,
    PeerServerRequest,
    PullRequest,
)
from sparkwright.operations import runtime

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
HUB = {**asdict(FETCH), "source": "hub", "repo": "org/x", "revision": "c" * 40, "files": [FILE]}
PEER_SERVER = PeerServerRequest("/keys", PeerRoots("/models", "/images"), 900)


def written(folder: Path, document: Any) -> Path:
    path = folder / "request.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    "sent",
    [
        FETCH,
        PULL,
        PEER_SERVER,
    ],
    ids=["fetch", "pull", "peer-server"],
)
def test_what_the_controller_writes_is_what_the_host_reads(tmp_path: Path, sent: Any) -> None:
    assert request.read(type(sent), written(tmp_path, json.loads(request.document(sent)))) == sent


@pytest.mark.parametrize(
    ("kind", "document", "message"),
    [
        (FetchRequest, [], "FetchRequest: [] is not of type dict"),
        (FetchRequest, {}, "FetchRequest: endpoint is missing"),
        (FetchRequest, {**asdict(FETCH), "retries": True}, "retries: True is not of type"),
        (FetchRequest, {**asdict(FETCH), "files": []}, "at least one file"),
        (FetchRequest, {**asdict(FETCH), "files": None}, "FetchRequest.files"),
        (FetchRequest, {**HUB, "revision": "main"}, "must be a full commit"),
        (FetchRequest, {**HUB, "downloader": "pigeon"}, "must be hf_transfer, xet or http"),
        (FetchRequest, {**HUB, "endpoint": "ftp://x"}, "not a valid http(s) address"),
        (FetchRequest, {**HUB, "destination": "relative"}, "absolute path"),
        (FetchRequest, {**HUB, "files": [{**FILE, "path": "../x"}]}, "would be outside"),
        (FetchRequest, {**HUB, "files": [{"path": "x", "size": 1}]}, "not be verified"),
        (FetchRequest, {**HUB, "files": [{**FILE, "size": "1"}]},
         "files.size: '1' is not of type int"),
        (FetchRequest, {**asdict(FETCH), "peers": "http://x"}, "FetchRequest.peers"),
        (PullRequest, {**asdict(PULL), "fetch": None}, "PullRequest.fetch"),
        (PeerServerRequest, {**asdict(PEER_SERVER), "idle": "1"}, "idle: '1' is not of"),
        (PeerServerRequest, {"idle": 1}, "keys is missing"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_one_message_that_names_the_key(
    tmp_path: Path, kind: Any, document: Any, message: str
) -> None:
    with pytest.raises(Failed) as caught:
        request.read(kind, written(tmp_path, document))
    assert message in str(caught.value)


def test_the_tasks_of_the_program_run_as_they_are_laid_out_on_a_host(tmp_path: Path) -> None:
    """Every module that a task imports is among the files, also what it imports late."""
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
