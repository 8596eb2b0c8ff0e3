"""`python -m lab.gpu.pack`, as root: files that a GPU machine without network needs, in parts.

Three archives, made again when their sources change, and cut as one stream into `.gpu/parts`: the
lab's base tree, the controller's wheels with systemd-nspawn's package, and vLLM's wheels.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from lab import base
from lab.gpu.layout import PART_BYTES, PARTS
from sparkwright.resolve.runtime import build_runtime

HERE = Path(__file__).resolve().parent
CACHE = Path("/var/cache/sparkwright-lab-gpu")
#: Oldest to newest C library that a wheel may be made for; the GPU machine has 2.39.
_GLIBC = (5, 12, 17, 24, 26, 27, 28, 31, 34, 35, 39)
_PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in _GLIBC]
_PLATFORMS += ["manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64", "any"]
#: Parts of the wheels: files that no engine on a Hopper GPU opens, and sources for a compiler that
#: is missing.
_UNUSED = (
    "vllm/vllm-rs", "vllm/third_party/fmha_sm100", "vllm/third_party/deep_gemm/include",
    "pycountry/locales", *(f"flashinfer/data/{name}" for name in ("cutlass", "cccl", "spdlog")),
    *(f"vllm/third_party/deep_gemm/_C.cpython-3{minor}-x86_64-linux-gnu.so"
      for minor in (10, 11, 13, 14)),
)  # fmt: skip
_NOT_OF_THE_BASE = (
    "./usr/bin/ctr", "./usr/bin/containerd-shim", "./usr/bin/containerd-shim-runc-v1",
    "./var/cache/*", "./var/lib/apt/lists/*",
)  # fmt: skip
#: Low priority, since other users work on this machine.
_NICE = ("nice", "-n", "19", "ionice", "-c3")


def main() -> int:
    """Make the missing archives and cut them."""
    parser = argparse.ArgumentParser(prog="python -m lab.gpu.pack", description=__doc__)
    parser.add_argument("--into", type=Path, default=PARTS)
    into: Path = parser.parse_args().into
    if os.geteuid() != 0:
        parser.error("a root file system is root's: run it with sudo")
    tree = base.ensure()
    requirements = HERE.parents[1] / "constraints.txt"
    archives = {
        "base": _archive("base", str(tree), tree, _NOT_OF_THE_BASE),
        "controller": _wheels("controller", requirements, "3.13"),
        "site": _wheels("site", HERE / "requirements.txt", "3.12"),
    }
    cut(archives, into)
    return 0


def cut(archives: dict[str, Path], into: Path, size: int = PART_BYTES) -> None:
    """Cut the archives, one after the other, into parts of a size; `receive` reads them."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    with subprocess.Popen(["cat", *archives.values()], stdout=subprocess.PIPE) as stream:
        assert stream.stdout
        number = 0
        while content := stream.stdout.read(size):
            folder = into / f"{number:02d}"
            folder.mkdir()
            (folder / f"part-{number:02d}").write_bytes(content)
            number += 1
    contents = [{"name": name, "size": path.stat().st_size} for name, path in archives.items()]
    text = json.dumps({"part_bytes": size, "archives": contents}, indent=1)
    (into / "00/contents.json").write_text(f"{text}\n")
    print(f"{number} parts in {into}")


def _wheels(name: str, requirements: Path, python: str) -> Path:
    """Unpacked wheels of a list for a version of Python, as an archive."""
    tree = CACHE / name
    lines = [line.split("--hash")[0].rstrip(" \\\n") for line in requirements.open()
             if line.strip() and not line.lstrip().startswith(("#", "--"))]  # fmt: skip
    key = "\n".join([python, *lines])
    if not (CACHE / f"{name}.tar.xz").exists() or _made_of(name) != _key(key):
        shutil.rmtree(tree, ignore_errors=True)
        wheels = CACHE / f"{name}-wheels"
        abis = (f"cp{python.replace('.', '')}", "abi3", "none")
        _run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels,
             "--disable-pip-version-check", "--only-binary=:all:", "--python-version", python,
             "--implementation", "cp", *_pairs("--abi", abis), *_pairs("--platform", _PLATFORMS),
             *lines)  # fmt: skip
        for wheel in wheels.glob("*.whl"):
            _run(sys.executable, "-m", "zipfile", "-e", wheel, tree)
        for data in tree.glob("*.data/*lib"):
            shutil.copytree(data, tree, dirs_exist_ok=True, symlinks=True)
        for path in _UNUSED:
            if (tree / path).is_dir():
                shutil.rmtree(tree / path)
            (tree / path).unlink(missing_ok=True)
        if name == "controller":
            _nspawn(tree)
            build_runtime("x86_64", tree / "runtime")  # files that the controller sends to hosts
    return _archive(name, key, tree)


def _nspawn(tree: Path) -> None:
    """systemd-nspawn of the base tree's own release, which the GPU machine's system lacks."""
    status = (base.path() / "var/lib/dpkg/status").read_text()
    version = status.split("\nPackage: systemd\n")[1].split("\nVersion: ")[1].split("\n")[0]
    file = f"systemd-container_{version}_amd64.deb"
    address = f"{base.debian_mirror().rstrip('/')}/pool/main/s/systemd/{file}"
    _run("curl", "--fail", "--silent", "--location", "--output",
         tree / "systemd-container.deb", address)  # fmt: skip


def _archive(name: str, key: str, tree: Path, without: Iterable[str] = ()) -> Path:
    """A tree as .tar.xz in blocks, so that all cores unpack it; made once for a key."""
    target = CACHE / f"{name}.tar.xz"
    if not target.exists() or _made_of(name) != _key(key):
        CACHE.mkdir(parents=True, exist_ok=True)
        print(f"packing {name}", flush=True)
        exclusions = " ".join(f"--exclude='{path}'" for path in without)
        pack = f"tar -C {tree} {exclusions} -c . | xz -2 -T+1 --block-size=24MiB >{target}"
        _run("bash", "-o", "pipefail", "-c", pack)
        (CACHE / f"{name}.key").write_text(_key(key))
    return target


def _made_of(name: str) -> str:
    path = CACHE / f"{name}.key"
    return path.read_text() if path.exists() else ""


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _pairs(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _run(*command: str | Path) -> None:
    done = subprocess.run([*_NICE, *map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed:\n{(done.stdout + done.stderr).strip()[-2000:]}")


if __name__ == "__main__":
    sys.exit(main())
