"""vLLM for the CPU: Debian's Python, pinned wheels, and the imports of a start, compiled."""

from pathlib import Path

from lab.real_engine import debian, modules, wheels
from lab.real_engine.kind import Kind
from lab.real_engine.places import DEBIAN, HERE, PACKAGES, REPOSITORY, REQUIREMENTS, SUITE, VERSION
from lab.serving.tags import Tag


def _make(root: Path, scratch: Path) -> None:
    debian.unpack(root, scratch, SUITE, DEBIAN)
    wheels.install(root, scratch)
    modules.compile_imported(root)


VLLM = Kind(
    "engine",
    "the real vLLM for the CPU, packed by sparkwright's lab",
    "4 minutes, 2 GB",
    Tag(
        (VERSION,),
        VERSION,
        repository=REPOSITORY,
        architectures=("amd64",),
        flavour="cpu",
        entrypoint=("/usr/local/bin/vllm",),
    ),
    _make,
    {f"!{PACKAGES}": "Debian's Python", PACKAGES: "vLLM and what it needs"},
    (
        REQUIREMENTS,
        *(HERE / f"{name}.py" for name in ("places", "debian", "wheels", "modules", "image")),
    ),
    {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"], "WorkingDir": "/"},
)
