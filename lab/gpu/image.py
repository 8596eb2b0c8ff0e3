"""`python3 -m lab.gpu.image build|push`: the served image, made from the GPU machine's own files.

The image has three uncompressed layers: the machine's own system (Python, compiler), its torch, and
vLLM's wheels. Entry point, user and working folder are as in `vllm/vllm-openai`; its CUDA compiler
is left out. The Python that has torch runs the program. The image has about 7 GB; building and
pushing the image take half a minute each.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from lab.gpu.driver import WITHOUT_MULTICAST
from lab.gpu.layout import DEPOT_FILES, HOME, REPOSITORY, SITE, VERSION
from lab.layout import DEPOT, REGISTRY_PORT
from lab.serving.build import CREATED, Image, manifest_of, push
from lab.serving.image_documents import OCI, document
from lab.serving.layers import Layer
from lab.serving.push import Registry
from lab.serving.tags import Tag

RESULT = HOME / "image.json"
TYPES = {**OCI, "layer": "application/vnd.oci.image.layer.v1.tar"}
TAG = Tag((f"v{VERSION}",), VERSION, repository=REPOSITORY, architectures=("amd64",))
PACKAGES = "usr/local/lib/python3.12/dist-packages"
FOLDERS = ("vllm-workspace", "root", "run", "tmp", "var/tmp")
LAUNCHER = """#!{python}
import sys

from vllm.entrypoints.cli.main import main

if __name__ == "__main__":  # the engine's processes are started anew from this file
    sys.exit(main())
"""
#: Excluded parts of the system: CUDA, and files that an engine does not open.
_NOT_OF_THE_SYSTEM = (
    "usr/local/cuda*", "usr/local/nvidia*", "usr/share/doc", "usr/share/man", "usr/share/locale",
    "usr/lib/firmware", "usr/lib/modules", "usr/lib/jvm", "usr/lib/llvm*", "usr/src",
    "usr/lib/libcuda*", "usr/lib/libnvidia*", "usr/lib/x86_64-linux-gnu/libcuda*",
    "usr/lib/x86_64-linux-gnu/libnvidia*",
)  # fmt: skip
#: Excluded packages of the Python with torch: other frameworks.
_NOT_OF_TORCH = (
    "jax*", "jaxlib*", "cupy*", "pyarrow*", "pandas*", "sklearn*", "scikit_learn*", "skimage*",
    "scikit_image*", "matplotlib*", "onnx*", "tensorstore*", "torch_geometric*", "lightning*",
    "pytorch_lightning*", "timm*", "flax*", "optax*", "orbax*", "tensorboard*", "seaborn*",
    "statsmodels*", "torchaudio*", "botorch*", "gpytorch*", "e3nn*", "numba_cuda*", "mpi4py*",
    "h5py*", "cmake*", "fontTools*", "sentence_transformers*", "peft*", "lxml*", "babel*",
    "jax_cuda13*", "torch/test", "torch/include", "pybind11*", "imageio*", "Cython*", "faiss*",
)  # fmt: skip


def build(scratch: Path = DEPOT_FILES / "image") -> list[Layer]:
    """Write the layers; the last layer waits only for `start.sh receive`."""
    scratch.mkdir(parents=True, exist_ok=True)
    venv, top = Path(sys.prefix), SITE.parent / "top"
    launcher = top / "usr/local/bin/vllm"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(LAUNCHER.format(python=venv / "bin/python3"))
    launcher.chmod(0o755)
    for name in FOLDERS:  # empty folders
        (top / name).mkdir(parents=True, exist_ok=True)
        (top / name).chmod(0o1777 if name.endswith("tmp") else 0o755)
    compiled = [sys.executable, "-m", "compileall", "-q", "-j", "0", str(SITE)]
    subprocess.run(compiled, capture_output=True, check=False)  # some files fail to compile
    roots = ["usr", "bin", "sbin", "lib", "lib64", "etc"]
    base = Path(os.path.realpath(sys.base_prefix))
    if base != Path("/usr") and not base.is_relative_to(venv):
        roots.append(str(base).lstrip("/"))
    system = [*_without(_NOT_OF_THE_SYSTEM), f"--exclude={str(venv).lstrip('/')}"]
    system += ["-C", "/", *(root for root in roots if Path("/", root).exists())]
    packages = f"{str(venv).lstrip('/')}/lib/python3.12/site-packages"
    torch = [*_without(f"{packages}/{name}" for name in _NOT_OF_TORCH)]
    torch += ["-C", "/", str(venv).lstrip("/")]
    move = f"--transform=s,^[.]/,{PACKAGES}/,S"
    engine = [move, "-C", str(SITE), ".", "-C", str(top), "usr/local/bin/vllm", *FOLDERS]
    parts = {"system": system, "torch": torch, "engine": engine}
    with ThreadPoolExecutor(len(parts)) as pool:
        jobs = [
            pool.submit(_layer, scratch / f"{name}.tar", paths) for name, paths in parts.items()
        ]
        layers = [job.result() for job in jobs]
    RESULT.write_text(json.dumps([asdict(layer) for layer in layers]))
    return layers


def image_of(layers: list[Layer], venv: Path) -> Image:
    """The documents: one index with one architecture."""
    packages = f"/{PACKAGES}:{venv}/lib/python3.12/site-packages"
    variables = {
        "PATH": f"{venv}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8", "PYTHONPATH": packages, "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "VLLM_USAGE_SOURCE": "production-docker-image", **WITHOUT_MULTICAST,
    }  # fmt: skip
    settings = {
        "Env": [f"{name}={value}" for name, value in variables.items()],
        "Entrypoint": ["vllm", "serve"],
        "WorkingDir": "/vllm-workspace",
        "Labels": {"org.opencontainers.image.title": "FAKE for vllm/vllm-openai (sparkwright lab)",
                   "org.opencontainers.image.version": VERSION},
    }  # fmt: skip
    names = ("the GPU machine's system", "its torch", f"vLLM {VERSION}'s wheels")
    config = document(
        {
            "architecture": "amd64", "os": "linux", "created": CREATED, "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
            "history": [{"created": CREATED, "created_by": "sparkwright lab", "comment": name}
                        for name in names],
        },
        OCI["config"],
    )  # fmt: skip
    manifest = manifest_of(config, layers, TYPES)
    entry = manifest.descriptor(platform={"architecture": "amd64", "os": "linux"})
    index = {"schemaVersion": 2, "mediaType": OCI["index"], "manifests": [entry]}
    return Image(document(index, OCI["index"]), [manifest], [config])


def send(layers: list[Layer]) -> str:
    """Push the image to the depot's registry, remove the layers, and return the digest."""
    image = image_of(layers, Path(sys.prefix))
    registry = Registry(f"http://{DEPOT.address}:{REGISTRY_PORT}", REPOSITORY)
    push(registry, TAG, image, layers)
    registry.close()
    for layer in layers:
        Path(layer.path).unlink()
    return image.index.digest


def _without(names: Iterable[str]) -> list[str]:
    return [f"--exclude={name}" for name in names]


def _layer(target: Path, paths: list[str]) -> Layer:
    command = ["tar", "--create", "--owner=0", "--group=0", "--numeric-owner", "--sort=name",
               "--warning=none", "--ignore-failed-read", "--file", str(target), *paths]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode > 1:  # 1: a file changed during the read
        raise SystemExit(f"tar of {target.name}: {done.stderr[-1500:]}")
    with target.open("rb") as file:
        digest = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    return Layer(digest, target.stat().st_size, digest, str(target))


if __name__ == "__main__":
    started = time.monotonic()
    if sys.argv[1] == "build":
        made = build()
        print(*(f"{Path(layer.path).name} {layer.size >> 20} MiB" for layer in made), sep=", ")
    else:
        print(send([Layer(**layer) for layer in json.loads(RESULT.read_text())]))
    print(f"{time.monotonic() - started:.1f} s")
