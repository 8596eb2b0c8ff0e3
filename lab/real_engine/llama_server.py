"""llama.cpp's `llama-server` for the CPU, out of Debian's unstable, in upstream's layout.

Upstream's images (ghcr.io/ggml-org/llama.cpp:server-*) start /app/llama-server as root, listen at
every address, and ask port 8080 for their health. Debian's program takes its libraries from
Debian's folders, and its backends are for the CPU alone; the rest equals upstream's.
"""

import shutil
from pathlib import Path

from lab import base
from lab.real_engine import debian
from lab.real_engine.kind import Kind
from lab.real_engine.places import HERE
from lab.serving.tags import Tag

REPOSITORY = "lab/llama.cpp"
#: Upstream's tags are `server-cuda` and `server-cuda-b11669`; unstable had 0.7.0, build 11669, when
#: this was written.
TAG = "server"
RECIPE, DRAFTING = "lab-tiny-qwen3-gguf", "lab-tiny-qwen3-gguf-draft"
PROGRAM = "/app/llama-server"
#: Python is for the fake nvidia-smi, which the fake toolkit mounts into each container.
_DEBIAN = ("base-files", "bash", "dash", "coreutils", "libc-bin", "util-linux", "python3",
           "llama.cpp-tools")  # fmt: skip


def _make(root: Path, scratch: Path) -> None:
    debian.unpack(root, scratch, base.UNSTABLE, _DEBIAN, base.debian_mirror())
    shutil.rmtree(root / "usr/share/llama.cpp")
    (root / "app").mkdir()
    (root / "usr/bin/llama-server").rename(root / PROGRAM.lstrip("/"))


LLAMA_SERVER = Kind(
    "llama",
    "the real llama-server for the CPU, packed by sparkwright's lab",
    "1 minute, 200 MB",
    Tag((TAG,), TAG, repository=REPOSITORY, architectures=("amd64",), flavour="cpu",
        entrypoint=(PROGRAM,)),
    _make,
    {"!": "Debian's llama-server"},
    (HERE / "llama_server.py", HERE / "debian.py", HERE / "image.py"),
    {
        "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "LLAMA_ARG_HOST=0.0.0.0"],
        "WorkingDir": "/app",
        "Healthcheck": {"Test": ["CMD", "curl", "-f", "http://localhost:8080/health"]},
    },
)  # fmt: skip
