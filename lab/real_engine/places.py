"""Names and places of the real engine."""

from pathlib import Path

#: Cache of builds, which take minutes and 1.7 GB: `python -m lab down` keeps this folder.
CACHE = Path("/var/cache/sparkwright-lab-engine")

REPOSITORY = "lab/vllm-cpu"
VERSION = "0.32.0"
RECIPE = "lab-tiny-qwen3-dflash"

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"

SUITE = "bookworm"
"""Release of Debian with Python 3.11, for which the wheels are built."""
DEBIAN = (
    "base-files", "bash", "dash", "coreutils", "libc-bin", "python3",
    "libnuma1", "libstdc++6",
    "util-linux",  # vLLM reads the cores from lscpu
    "g++", "libpython3.11-dev", "openssl",  # inductor compiles for the CPU, and names it by a hash
)  # fmt: skip
PACKAGES = "usr/local/lib/python3.11/dist-packages"
"""Folder in which Debian's Python finds packages that apt did not install."""
