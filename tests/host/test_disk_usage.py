"""Unneeded files are removed, and a failed removal is not called removed."""

import os
from pathlib import Path

import pytest

from sparkwright.host import disk_usage, removal
from sparkwright.host.disk_usage import DiskUsageRequest
from sparkwright.host.lib import docker
from sparkwright.host.lib.processes import Outcome
from sparkwright.host.lib.records import replace

NAMES = [f"ghcr.io/x/vllm:sha256-{digit * 64}" for digit in "cab"]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskUsageRequest:
    """A host with three images, of which one is in use by a container of somebody's."""

    def command(*arguments: str, **_: object) -> Outcome:
        held = arguments[-1] == NAMES[0]
        return Outcome(int(held), "", "conflict: a container is using it" if held else "")

    monkeypatch.setattr(docker, "image_names", lambda: [*NAMES, "somebody:else"])
    monkeypatch.setattr(docker, "image", lambda *_, **__: {"Size": 5})
    monkeypatch.setattr(docker, "docker", command)
    return DiskUsageRequest(str(tmp_path / "models"), str(tmp_path / "services"))


def test_an_image_that_can_not_be_removed_is_not_called_removed(host: DiskUsageRequest) -> None:
    asked = DiskUsageRequest(host.models_root, host.services_root, prune=True)
    removed = {thing.name: (thing.removed, thing.fault) for thing in disk_usage.main(asked).things}
    assert removed == {
        NAMES[1]: (True, None),
        NAMES[2]: (True, None),
        NAMES[0]: (False, "conflict: a container is using it"),
    }


def test_images_are_listed_by_name(host: DiskUsageRequest) -> None:
    assert [thing.name for thing in disk_usage.main(host).things] == sorted(NAMES)


def test_a_kv_cache_on_a_disk_goes_with_its_release(host: DiskUsageRequest) -> None:
    """Releases say where their caches are, on whatever disk."""
    caches = Path(host.models_root).parent / "disk/sparkwright-kv/qwen"
    homes = Path(host.services_root, "services/qwen/releases")
    for digit in "ab":
        (caches / (digit * 12)).mkdir(parents=True)
        (caches / (digit * 12) / "block.bin").write_text(digit)
    for release, digit in (("old", "a"), ("new", "b")):
        (homes / release).mkdir(parents=True)
        text = f'source: "{caches}/{digit * 12}", target: "/var/cache/kv-offload"'
        (homes / release / "compose.yaml").write_text(text)
    os.utime(homes / "old", (1, 1))
    disk_usage.main(replace(host, keep_releases=2, prune=True))
    assert len(list(caches.iterdir())) == 2
    disk_usage.main(replace(host, keep_releases=1, prune=True))
    assert [path.name for path in caches.iterdir()] == ["b" * 12]
    removal.services(Path(host.services_root), ("qwen",))
    assert not list(caches.iterdir())
