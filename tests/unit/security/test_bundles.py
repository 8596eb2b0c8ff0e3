"""An attacker changes any byte of a bundle or a lock: no part of the contents is run or built."""

import base64
import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from types import SimpleNamespace as Space
from typing import Any

import pytest

from sparkwright.facts.asking import HostError
from sparkwright.findings.user_error import UserError
from sparkwright.operations.lib import runtime as operation
from sparkwright.resolve import build_context, runtime
from sparkwright.resolve.lock import Lock, read_lock, render_lock, with_contexts, without_contexts
from sparkwright.resolve.registry import ResolvedImage
from sparkwright.run import sharing
from tests.tables import Tables
from tests.unit.builders import COMMIT, DIGEST, locked, plan

cases = Tables(__file__)

EVIL = b"import os; os.system('id > /root/owned')\n"


def _forged(bundle: Path, named: str) -> Path:
    """A runtime with another hf_transfer."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("hf_transfer/__init__.py")
        member.size = len(EVIL)
        archive.addfile(member, io.BytesIO(EVIL))
    packed = gzip.compress(buffer.getvalue())
    bundle.mkdir(parents=True, exist_ok=True)
    (bundle / named).write_bytes(packed)
    return bundle


def test_this_version_pins_a_runtime_for_every_kind_of_host() -> None:
    data = json.loads(runtime.DIGESTS.read_text())
    assert data.pop("pins") == hashlib.sha256(runtime.REQUIREMENTS.read_bytes()).hexdigest()
    assert data.keys() == {*runtime.ARCHITECTURES}
    assert all(len(digest) == 64 for digest in data.values())


@pytest.mark.parametrize("own_name", [True, False], ids=["under-its-name", "under-another"])
def test_a_forged_runtime_of_a_bundle_is_refused(tmp_path: Path, own_name: bool) -> None:
    named = "evil.tar.gz"
    if own_name:
        named = runtime.pinned_runtime("x86_64", tmp_path).path.name
    _forged(tmp_path / "runtime", named)
    arguments = (
        "it was changed, and is not used" if own_name else "The bundle has no runtime-x86_64"
    )
    with pytest.raises(runtime.RuntimeBundleError, match=arguments):
        runtime.carried_runtime("x86_64", tmp_path / "runtime")
    with pytest.raises(HostError, match=arguments):
        operation._libraries("x86_64", str(tmp_path))


def test_a_runtime_that_fills_the_memory_is_refused(tmp_path: Path) -> None:
    path = runtime.pinned_runtime("x86_64", tmp_path).path
    path.write_bytes(gzip.compress(bytes(300 << 20), compresslevel=1))
    with pytest.raises(runtime.RuntimeBundleError, match="is not the runtime that this version"):
        runtime.carried_runtime("x86_64", tmp_path)


CONTEXT = {"Dockerfile": (base64.b64encode(b"FROM base").decode(), False)}


def _bundled(bundle: Path, text: str = "FROM base") -> None:
    folder = bundle / "build" / COMMIT / "docker"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text(text)


def _build(bundle: Path, context: str | None) -> Any:
    planned = Space(context="https://git.example/x", directory="docker", base_name="base:1")
    resolved = Space(commit=COMMIT, context=context)
    image: Any = Space(planned=Space(build=planned), resolved=resolved)
    space: Any = Space(settings=Space(bundle=str(bundle)))
    build = sharing.build_of(space, image)
    assert build is not None
    return build


def test_the_build_context_of_a_bundle_equals_the_locked_build_context(tmp_path: Path) -> None:
    _bundled(tmp_path)
    assert list(_build(tmp_path, build_context.digest(CONTEXT))().files) == ["Dockerfile"]


@pytest.mark.parametrize("harm", ["text", "mode", "more"])
def test_a_changed_build_context_is_not_built(tmp_path: Path, harm: str) -> None:
    _bundled(tmp_path, "FROM base\nRUN evil" if harm == "text" else "FROM base")
    folder = tmp_path / "build" / COMMIT / "docker"
    if harm == "mode":
        (folder / "Dockerfile").chmod(0o755)
    if harm == "more":
        (folder / "entrypoint").write_text("evil")
    with pytest.raises(HostError, match="differs from the lock's"):
        _build(tmp_path, build_context.digest(CONTEXT))()


def test_a_build_context_that_no_lock_pins_is_not_built(tmp_path: Path) -> None:
    _bundled(tmp_path)
    with pytest.raises(HostError, match="sparkwright lock INVENTORY"):
        _build(tmp_path, None)()


def test_an_endless_build_context_is_not_read(tmp_path: Path) -> None:
    _bundled(tmp_path)
    with (tmp_path / "build" / COMMIT / "docker/large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(HostError, match="larger than 20 MiB"):
        _build(tmp_path, None)()


def test_the_lock_gets_the_hash_of_each_build_context(tmp_path: Path) -> None:
    _bundled(tmp_path)
    build = Space(context="https://git.example/x", directory="docker")
    named: Any = [
        Space(images=[Space(name="built:1", build=build, pulled=Space(key=None))], models=[])
    ]
    lock = Lock(images={"built:1": ResolvedImage(DIGEST, {}, COMMIT)}, models={})
    assert without_contexts(named, lock) == ["built:1"]
    pinned = with_contexts(named, lock, tmp_path / "build")
    assert pinned.images["built:1"].context == build_context.digest(CONTEXT)
    assert without_contexts(named, pinned) == []
    assert f"context: {build_context.digest(CONTEXT)}" in render_lock(pinned)


@cases("old", "new")
def test_a_lock_with_paths_or_options_as_hashes_is_refused(
    tmp_path: Path, old: str, new: str
) -> None:
    text = locked(plan())
    assert old in text
    (tmp_path / "fleet.lock").write_text(text.replace(old, new))
    with pytest.raises(UserError, match="not in the required form"):
        read_lock(tmp_path / "fleet.lock")
