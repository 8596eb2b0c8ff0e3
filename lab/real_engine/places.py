"""Names and places of the real engine."""

from pathlib import Path

#: The folder outlives the fleet, whose cache is beside it: its contents take minutes, and 1.7 GB.
CACHE = Path("/var/cache/sparkwright-lab-engine")

REPOSITORY = "lab/vllm-cpu"
VERSION = "0.32.0"
RECIPE = "lab-tiny-qwen3-dflash"

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"

SUITE = "bookworm"
"""Its Python is 3.11, which the wheels are for."""
DEBIAN = (
    "base-files", "bash", "dash", "coreutils", "libc-bin", "python3",
    "libnuma1", "libstdc++6",
    "util-linux",  # vLLM reads the cores from lscpu
    "g++", "libpython3.11-dev", "openssl",  # inductor compiles for the CPU, and names it by a hash
)  # fmt: skip
PACKAGES = "usr/local/lib/python3.11/dist-packages"
"""Where Debian's Python looks for what its own packages did not bring."""
