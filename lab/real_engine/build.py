"""Build of tree and layers, once for each set of versions; a killed build leaves no partial
result.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from lab import packages
from lab.real_engine import image
from lab.real_engine.kind import Kind
from lab.real_engine.places import CACHE
from lab.serving.layers import Layer


@dataclass(frozen=True)
class Engine:
    """Result of a build: the tree, to run on this machine, and its layers, to push."""

    kind: Kind
    root: Path
    layers: list[Layer]


def ensure(kind: Kind, cache: Path = CACHE) -> Engine:
    """Return an engine, built if the cache has no build of these versions."""
    cache.mkdir(parents=True, exist_ok=True)
    home = cache / f"{kind.name}-{_key(kind)}"
    with _only_one(cache):
        if not home.is_dir():
            packages.install((*packages.NEEDED, "binutils"))
            _build(kind, cache, home)
    facts = json.loads((home / "layers.json").read_text(encoding="utf-8"))
    layers = [Layer(**{**fact, "path": home / fact["path"]}) for fact in facts]
    return Engine(kind, home / "root", layers)


def remove(cache: Path = CACHE) -> None:
    """Remove all builds."""
    shutil.rmtree(cache, ignore_errors=True)


def _build(kind: Kind, cache: Path, home: Path) -> None:
    started = time.monotonic()
    print(f"building {kind.title}: {kind.cost}", flush=True)
    for stale in cache.glob(f"{kind.name}-*"):  # remains of other versions or of a killed build
        shutil.rmtree(stale, ignore_errors=True)
    # The name is new, since processes of a killed build may still write to an old path.
    building = home.with_suffix(f".{os.getpid()}.new")
    root, scratch = building / "root", building / "scratch"
    scratch.mkdir(parents=True)
    try:
        kind.make(root, scratch)
        layers = [
            image.pack(root, below, building / f"layer-{number}.tar.gz")
            for number, below in enumerate(kind.layers)
        ]
        shutil.rmtree(scratch)
        facts = [{**asdict(layer), "path": Path(layer.path).name} for layer in layers]
        (building / "layers.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        building.rename(home)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    size = sum(layer.size for layer in layers) / 1e6
    print(f"engine built in {time.monotonic() - started:.0f} s, {size:.0f} MB packed", flush=True)


def _key(kind: Kind) -> str:
    """Return a hash of the versions and of the code that makes the tree."""
    digest = hashlib.sha256()
    for path in kind.sources:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def _only_one(cache: Path) -> Iterator[None]:
    """Allow one build at a time; the kernel releases the lock of a killed build."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(cache / "lock", flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
