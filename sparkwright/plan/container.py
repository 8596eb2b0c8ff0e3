"""What a service's container may do on its host, and how it gets the API key.

The key is in no variable, argument or label that ``docker inspect`` shows, and in no command line:
the host's 0600 file is mounted, and the last shell before vLLM puts it into vLLM's environment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.catalog import Exceptions, Image

#: Where a container finds the file with the API key: one line, ``VLLM_API_KEY=...``.
SECRETS_MOUNT = "/run/secrets/vllm.env"
#: Processes and threads: some 500 are seen with vLLM, its compilers and 20 cores.
PIDS_LIMIT = 4096
#: Size of a private /dev/shm, where the recipe gives none: the cards' own figure.
SHM_GIB = 16.0

#: Where a container finds the directory of its boot caches, and what keeps what below it: vLLM's
#: compiled graphs and autotuning, the kernels that FlashInfer, Triton, inductor, PyTorch, CuTe and
#: TVM build, and what the driver makes of PTX (vLLM 0.24.0, envs.py; the libraries' own docs).
#: Seen to be all of it on a GPU, and to belong to its path: another mount point compiles anew.
#: And Python's bytecode: images built by uv, vLLM's own too, have none (vllm#55422).
BOOT_CACHES_MOUNT = "/var/cache/boot"
BOOT_CACHES = {
    "VLLM_CACHE_ROOT": f"{BOOT_CACHES_MOUNT}/vllm",
    "FLASHINFER_WORKSPACE_BASE": BOOT_CACHES_MOUNT,
    "TRITON_CACHE_DIR": f"{BOOT_CACHES_MOUNT}/triton",
    "TORCHINDUCTOR_CACHE_DIR": f"{BOOT_CACHES_MOUNT}/inductor",
    "TORCH_EXTENSIONS_DIR": f"{BOOT_CACHES_MOUNT}/torch_extensions",
    "CUDA_CACHE_PATH": f"{BOOT_CACHES_MOUNT}/cuda",
    "CUTE_DSL_CACHE_DIR": f"{BOOT_CACHES_MOUNT}/cute_dsl",
    "TVM_FFI_CACHE_DIR": f"{BOOT_CACHES_MOUNT}/tvm_ffi",
    "PYTHONPYCACHEPREFIX": f"{BOOT_CACHES_MOUNT}/pycache",
}

#: ``export "$key"`` evaluates nothing of the value. No file, no key, no start.
_START = f'IFS= read -r key <{SECRETS_MOUNT} && export "$key" && exec "$0" "$@"'
#: An entry point with VLLM_API_KEY in its environment can put it on a command line, as that of
#: vllm-dflash does. So it is given none, and finds a `vllm` first that reads the key.
_START_UNKNOWING = f"""\
vllm=$(command -v vllm) && place=$(mktemp -d) &&
printf '#!/bin/sh\\nIFS= read -r key <%s && export "$key" && exec %s "$@"\\n' \
{SECRETS_MOUNT} "$vllm" >"$place/vllm" &&
chmod 500 "$place/vllm" && export PATH="$place:$PATH" && exec "$0" "$@"
"""


@dataclass(frozen=True)
class ContainerPlan:
    """What a container is given.

    Attributes:
        strict: read-only root file system, private /dev/shm, a network of its own.
        cap_add: capabilities, all others being dropped.
        writable: directories that it may write to where its root is read-only.
        pids_limit: processes and threads that it may have.
        boot_caches: whether a directory of the host keeps what the engine compiles.
        reasons: why it gets what is over the default, each as one line of ASCII for a comment.
    """

    strict: bool
    cap_add: tuple[str, ...]
    writable: tuple[str, ...]
    pids_limit: int
    reasons: tuple[str, ...]
    boot_caches: bool = False


def plan_container(
    image: Image, hardening: str, given: Sequence[Exceptions], *, boot_caches: bool | None = None
) -> ContainerPlan:
    """A container of an image, with the exceptions that recipe and service give, in this order."""
    limits = [one.pids_limit for one in given if one.pids_limit]
    return ContainerPlan(
        strict=hardening == "strict",
        cap_add=tuple(sorted({name for one in given for name in one.cap_add})),
        writable=tuple(
            dict.fromkeys([*image.writable, *(place for one in given for place in one.writable)])
        ),
        pids_limit=limits[-1] if limits else PIDS_LIMIT,
        reasons=tuple(json.dumps(one.reason) for one in given),
        boot_caches=hardening != "strict" if boot_caches is None else boot_caches,
    )


def container_entrypoint(entrypoint: str, *, variables: bool) -> list[str]:
    """The words that a container starts with; its arguments follow.

    Args:
        variables: whether the entry point is the image's own, and starts vLLM itself.
    """
    return ["/bin/sh", "-c", _START_UNKNOWING if variables else _START, entrypoint]
