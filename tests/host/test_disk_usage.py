"""Unneeded files are removed, and a failed removal is reported as failed."""

import json
import os
import shutil
from pathlib import Path

import pytest

from sparkwright.host import disk_usage, removal
from sparkwright.host.disk_usage import DiskUsageRequest
from sparkwright.host.lib import docker
from sparkwright.host.lib.processes import Outcome
from sparkwright.host.lib.records import replace
from tests.tables import Tables
from tests.unit.builders import kept_service

cases = Tables(__file__)

NAMES = [f"ghcr.io/x/vllm:sha256-{digit * 64}" for digit in "cab"]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskUsageRequest:
    """A host with three images; a foreign container uses one of them."""

    def command(*arguments: str, **_: object) -> Outcome:
        held = arguments[-1] == NAMES[0]
        return Outcome(int(held), "", "conflict: a container is using it" if held else "")

    monkeypatch.setattr(docker, "image_names", lambda: [*NAMES, "somebody:else"])
    monkeypatch.setattr(docker, "image", lambda *_, **__: {"Size": 5})
    monkeypatch.setattr(docker, "docker", command)
    return DiskUsageRequest(str(tmp_path / "models"), str(tmp_path / "services"))


def test_an_image_in_use_is_reported_as_kept(host: DiskUsageRequest) -> None:
    asked = DiskUsageRequest(host.models_root, host.services_root, prune=True)
    removed = {thing.name: (thing.removed, thing.fault) for thing in disk_usage.main(asked).things}
    assert removed == {
        NAMES[1]: (True, None),
        NAMES[2]: (True, None),
        NAMES[0]: (False, "conflict: a container is using it"),
    }


def test_images_are_listed_by_name(host: DiskUsageRequest) -> None:
    assert [thing.name for thing in disk_usage.main(host).things] == sorted(NAMES)


def keep(home: Path, release: str, caches: str | None) -> None:
    """A kept release whose record has this directory for its KV caches."""
    folder = home / "releases" / release
    folder.mkdir(parents=True)
    service = kept_service(release, home.name, str(home.parent.parent))
    record = {**json.loads(service.record), "offload_directory": caches}
    (folder / "release.json").write_text(json.dumps(record))
    (folder / "compose.yaml").write_text(f'NOTE: "{caches}/{release}"')


def test_a_kv_cache_on_a_disk_is_removed_with_its_release(host: DiskUsageRequest) -> None:
    """Releases name their caches, on any disk."""
    caches = Path(host.models_root).parent / "disk/sparkwright-kv/qwen"
    home = Path(host.services_root, "services/qwen")
    for release in ("a" * 12, "b" * 12):
        (caches / release).mkdir(parents=True)
        (caches / release / "block.bin").write_text("block")
        keep(home, release, str(caches))
    os.utime(home / "releases" / ("a" * 12), (1, 1))
    disk_usage.main(replace(host, keep_releases=2, prune=True))
    assert len(list(caches.iterdir())) == 2
    disk_usage.main(replace(host, keep_releases=1, prune=True))
    assert [path.name for path in caches.iterdir()] == ["b" * 12]
    removal.services(Path(host.services_root), ("qwen",))
    assert not list(caches.iterdir())


@cases("path")
def test_only_the_directory_of_a_releases_own_kv_cache_is_removed(
    host: DiskUsageRequest, tmp_path: Path, path: str | None
) -> None:
    """A path elsewhere may belong to another user, even if the compose file names it."""
    release, homes = "0123456789ab", tmp_path / "home/sparkwright-kv"
    for name in ("chat", "other"):
        (homes / name / release).mkdir(parents=True)
    (tmp_path / "srv").mkdir()
    (tmp_path / "link").symlink_to("home")
    home = Path(host.services_root, "services/chat")
    keep(home, release, path and path.format(tmp_path))
    (home / f"releases/{release}/compose.yaml").write_text(
        f'NOTE: "{homes}/chat/{release}", "{tmp_path}/srv/../home/sparkwright-kv/chat/{release}"'
    )
    answer = removal.services(Path(host.services_root), ("chat",))
    assert [(homes / name / release).is_dir() for name in ("chat", "other")] == [True, True]
    assert bool(answer.left) == (path is not None)


def test_a_link_made_during_the_removal_of_a_kv_cache_is_not_followed(
    host: DiskUsageRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, caches = "0123456789ab", tmp_path / "disk/sparkwright-kv/chat"
    for folder in (caches, tmp_path / "stays"):
        (folder / release).mkdir(parents=True)
    home = Path(host.services_root, "services/chat")
    keep(home, release, str(caches))
    rmtree = shutil.rmtree

    def swapped(path: str | Path, ignore_errors: bool = False) -> None:
        if str(path).endswith(release):
            caches.rename(caches.with_name("moved"))
            caches.symlink_to(tmp_path / "stays")
        rmtree(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", swapped)
    removal.services(Path(host.services_root), ("chat",))
    assert (tmp_path / "stays" / release).is_dir()
    assert not list(caches.with_name("moved").iterdir())
