"""vLLM and its dependencies, as pinned wheels, in the tree's Python.

A pip of the lab's own installs them for the tree's Python, so that neither this machine's version
of Python nor its packages matter. `--no-deps` throughout: requirements.txt is the whole list. It
lacks parts that an engine on the CPU does not need: Triton, OpenCV, torchvision, torchaudio, and
the profiler's and tracer's exporters.

torch is PyTorch's own build for the CPU (2.13.0+cpu), pinned by hash like the rest: pip's own
configuration must name its index.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from lab.real_engine.places import PACKAGES, REQUIREMENTS, VERSION

#: The oldest to the newest C library that a wheel may be made for; Debian 12 has 2.36.
_GLIBC = (5, 12, 17, 24, 26, 27, 28, 31, 34, 35, 36)
_PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in _GLIBC]
_PLATFORMS += ["manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64"]

_UNUSED = (
    "bin",  # started by a path of the pip that installed it
    "numba/tests", "numba/cuda/tests", "numpy/_core/tests",
    "torch/test", "torch/share",
)  # fmt: skip
#: Only these two of torch's programs are asked for while it runs.
_TORCH_PROGRAMS = ("torch_shm_manager",)

#: vLLM loads one of three libraries by the CPU. The plainest runs on every machine, and a tiny
#: model needs no other: 330 MB less.
_PLAINEST, _OTHERS = "_C_AVX2.abi3.so", ("_C.abi3.so", "_C_AVX512.abi3.so")
#: A third of the largest libraries is debugging data.
_STRIPPED = (
    f"vllm/{_PLAINEST}", "torch/lib/libtorch_cpu.so", "llvmlite/binding/libllvmlite.so",
)  # fmt: skip

_LAUNCHER = """#!/usr/bin/python3
import sys

from vllm.entrypoints.cli.main import main

if __name__ == "__main__":  # the engine's processes are started anew from this file
    sys.exit(main())
"""


def install(root: Path, scratch: Path) -> None:
    """Install the wheels into the tree and remove files that the engine never opens."""
    packages = root / PACKAGES
    _pip(packages, scratch)
    for name in _UNUSED:
        shutil.rmtree(packages / name, ignore_errors=True)
    for program in (packages / "torch/bin").iterdir():
        if program.name not in _TORCH_PROGRAMS:
            _remove(program)
    for name in _OTHERS:
        (packages / "vllm" / name).unlink()
        (packages / "vllm" / name).symlink_to(_PLAINEST)
    for name in _STRIPPED:
        subprocess.run(["strip", "--strip-unneeded", packages / name], check=True)
    # vLLM asks for its own version under the name `vllm`, which shows that it is for the CPU.
    own = packages / f"vllm-{VERSION}+cpu.dist-info"
    own.mkdir()
    (own / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")
    launcher = root / "usr/local/bin/vllm"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(_LAUNCHER)
    launcher.chmod(0o755)


def _pip(packages: Path, scratch: Path) -> None:
    tool = scratch / "pip"
    subprocess.run([sys.executable, "-m", "venv", tool], check=True)
    arguments = [str(tool / "bin/python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    arguments += ["--disable-pip-version-check", "--require-hashes", "--only-binary=:all:"]
    arguments += ["--no-compile", "--python-version", "3.11", "--implementation", "cp"]
    for abi in ("cp311", "abi3", "none"):
        arguments += ["--abi", abi]
    for platform in _PLATFORMS:
        arguments += ["--platform", platform]
    arguments += ["--target", str(packages), "-r", str(REQUIREMENTS)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"pip could not install the engine:\n{done.stderr.strip()[-2000:]}\n"
            "torch 2.13.0+cpu is PyTorch's own build: pip's configuration must say where it is"
        )


def _remove(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)
    else:
        folder.unlink()
