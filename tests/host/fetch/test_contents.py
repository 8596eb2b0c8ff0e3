"""Fetched models: contents against the catalog's entry, and the receipt of their check."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from lab.hub.repositories import MINIATURES
from sparkwright.host import verify_models as rehash
from sparkwright.host.fetch import contents
from sparkwright.host.fetch.request import ExpectedContents
from sparkwright.host.lib import receipt
from tests.host.fetch.conftest import Fetch
from tests.tables import Tables
from tests.unit.builders import catalog, plan, wanted

cases = Tables(__file__)

MODELS = {
    model.repository: model.name
    for model in catalog().models.values()
    if model.repository in {miniature.id for miniature in MINIATURES}
}


def _write(folder: Path, repository: str, revision: int) -> list[str]:
    (made,) = [miniature for miniature in MINIATURES if miniature.id == repository]
    names = []
    number = range(1, len(made.revisions) + 1)[revision]
    for path, content in made.tree(number, 1.0).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        parts = content if isinstance(content, bytes) else b"".join(content())
        (folder / path).write_bytes(parts)
        names.append(path)
    return names


def _expected(repository: str) -> ExpectedContents:
    desired = wanted(plan({"s": {"recipe": "qwen36-35b-a3b-heretic-dflash"}}))
    return desired._expected(repository)


@pytest.mark.parametrize("repository", sorted(MODELS))
def test_the_newest_revision_of_every_model_matches_the_catalog(
    tmp_path: Path, repository: str
) -> None:
    names = _write(tmp_path, repository, -1)
    assert contents.faults(tmp_path, names, _expected(repository)) == []


@pytest.mark.parametrize(("revision", "check"), [(0, "first-layout"), (1, "vision-tower-nested")])
def test_a_bad_revision_is_recognized_by_its_content(
    tmp_path: Path, revision: int, check: str
) -> None:
    body = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"
    names = _write(tmp_path, body, revision)
    (fault,) = contents.faults(tmp_path, names, _expected(body))
    assert f"[{check}]" in fault


def test_leaking_channels_are_recognized_by_the_generation_config(tmp_path: Path) -> None:
    body = "AEON-7/Gemma-4-26B-A4B-it-Uncensored-NVFP4"
    names = _write(tmp_path, body, -1)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [1, 106]}')
    (fault,) = contents.faults(tmp_path, names, _expected(body))
    assert "eos_token_id of generation_config.json lacks 50, 98, 100, 101 [gemma-eos]" in fault


def _safetensors(path: Path, *tensors: str, size: int = 8) -> None:
    header = {
        name: {"dtype": "BF16", "shape": [size // 2], "data_offsets": [n * size, (n + 1) * size]}
        for n, name in enumerate(tensors)
    }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size * len(tensors)))


def test_shards_and_index_must_agree(tmp_path: Path) -> None:
    _safetensors(tmp_path / "one.safetensors", "a", "b")
    places = {"a": "one.safetensors", "c": "one.safetensors", "d": "two.safetensors"}
    (tmp_path / "m.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    names = ["one.safetensors", "m.safetensors.index.json"]
    assert contents.faults(tmp_path, names, ExpectedContents()) == [
        "m.safetensors.index.json names two.safetensors, which is missing",
        "tensors are not in the files that m.safetensors.index.json names: c",
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "is not a safetensors file"),
        (b"", "is not a safetensors file"),
        ((3).to_bytes(8, "little") + b"{]}", "has a header that is not valid JSON"),
        ((2).to_bytes(8, "little") + b"{}" + b"more", "has 14 bytes, but 10 by its header"),
    ],
)
def test_an_invalid_safetensors_header_is_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    assert contents.faults(tmp_path, ["x.safetensors"], ExpectedContents()) == [
        f"x.safetensors {reason}"
    ]


@pytest.mark.parametrize("content", [b"", b"\x80\x04K", b"version https://git-lfs"])
def test_an_invalid_gguf_header_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.gguf").write_bytes(content)
    (tmp_path / "y.gguf").write_bytes(b"GGUF" + content)
    result = contents.faults(tmp_path, ["x.gguf", "y.gguf"], ExpectedContents())
    assert result == ["x.gguf is not a GGUF file"]


@cases("method", "name", "reason")
def test_a_format_other_than_the_catalogs_format_is_refused(
    tmp_path: Path, method: str | None, name: str, reason: str
) -> None:
    config = {"quantization_config": {"quant_method": method}} if method else {}
    (tmp_path / "config.json").write_text(json.dumps(config))
    result = contents.faults(tmp_path, ["config.json"], ExpectedContents(name))
    assert result == ([f"the weights are {reason}, but {name} in the catalog"] if reason else [])


def test_a_fetch_installs_no_unexpected_content(fetch: Fetch) -> None:
    fetch.hub.files["small.safetensors"] = bytes(9_999)
    for expect in ({"format": "bf16", "checks": []}, {}):
        output = fetch.fail(
            "is complete, but does not match the catalog", apart=True, expect=expect
        )
        assert "small.safetensors is not a safetensors file" in output
        assert not fetch.destination.exists()
    # Nothing is fetched again: the verified files are kept.
    fetch.hub.add("small.safetensors", bytes(9_999), lfs=True)
    fetch.hub.hits.clear()
    fetch.complete(apart=True)
    assert {hit.path.rpartition("/")[2] for hit in fetch.hub.hits if hit.sent} == {
        "small.safetensors"
    }


COMMIT = "a" * 40
SHA256 = hashlib.sha256(b"content").hexdigest()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    (directory / "sub").mkdir(parents=True)
    files = {}
    for name in ("a.bin", "sub/b.bin"):
        (directory / name).write_bytes(b"content")
        result = (directory / name).stat()
        files[name] = {"size": 7, "mtime_ns": result.st_mtime_ns, "sha256": SHA256}
    document = {"version": 1, "repo": "o/m", "endpoint": "x", "commit": COMMIT, "files": files}
    (directory / ".sparkwright-receipt.json").write_text(json.dumps(document), encoding="utf-8")
    return directory


def test_an_intact_directory_has_no_fault(model: Path) -> None:
    assert receipt.check(str(model), COMMIT) is None
    assert receipt.check(str(model.parent / "none"), COMMIT) == "is missing"


@cases("harm", "fault")
def test_each_damage_to_a_directory_is_reported(model: Path, harm: str, fault: str) -> None:
    subprocess.run(["sh", "-c", harm], cwd=model, check=True)
    assert receipt.check(str(model), COMMIT) == fault


def test_another_commit_and_a_linked_directory_are_faults(model: Path) -> None:
    assert receipt.check(str(model), "b" * 40) == f"has commit {COMMIT}"
    link = model.parent / "link"
    link.symlink_to(model)
    assert receipt.check(str(link), COMMIT) == "is not a directory"


def test_a_second_hash_finds_changes_with_equal_size_and_time(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "nice", lambda _: 0)  # nice is permanent, and other tests follow
    path, nowhere = str(model), str(model / "nowhere")
    request = (path, nowhere)
    answer = rehash.main(request)
    assert (answer[path].faults, answer[path].bytes) == ((), 14)
    assert answer[nowhere].faults == ("the directory has no receipt",)
    before = (model / "a.bin").stat().st_mtime_ns
    (model / "a.bin").write_bytes(b"conten!")
    os.utime(model / "a.bin", ns=(0, before))
    assert receipt.check(path, COMMIT) is None
    assert rehash.main(request)[path].faults == ("a.bin has changed since it was verified",)
    assert receipt.check(path, COMMIT) == "has no receipt"
