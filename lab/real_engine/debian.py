"""The Debian that an engine runs on: unpacked, not configured, as for the fake's image."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

_GCC = "usr/lib/gcc/x86_64-linux-gnu/12"
_UNUSED = (
    "boot", "media", "mnt", "opt", "srv",
    "etc/apt", "etc/fstab", "etc/hostname", "etc/resolv.conf",  # of this machine
    "usr/share/doc", "usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man",
    "usr/share/bash-completion", "usr/share/zoneinfo",
    "usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/perl-base", "usr/bin/perl",
    "usr/lib/python3.11/ensurepip", "usr/lib/python3.11/idlelib", "usr/lib/python3.11/test",
    "usr/lib/python3.11/turtledemo", "usr/lib/python3.11/pydoc_data",
    "var/cache", "var/lib/apt", "var/lib/dpkg",
    # Parts of the compiler: C, link-time optimization, sanitizers, and static linking.
    *(f"{_GCC}/{name}" for name in ("cc1", "lto1", "libstdc++.a", "libasan.a", "libtsan.a",
                                    "liblsan.a", "libubsan.a")),
    *(f"usr/lib/x86_64-linux-gnu/{name}" for name in ("libc.a", "libm-2.36.a", "libmvec.a",
                                                      "libasan.so.8.0.0", "libtsan.so.2.0.0")),
    "usr/lib/python3.11/config-3.11-x86_64-linux-gnu",
)  # fmt: skip


def unpack(root: Path, scratch: Path, suite: str, packages: Sequence[str], *mirror: str) -> None:
    """Make the tree at `root`, with temporary files in `scratch`.

    mirror: Debian mirror of another suite than this machine's; it may be a snapshot.
    """
    archive = scratch / "debian.tar"
    command = [
        "mmdebstrap", "--quiet", "--variant=extract", "--components=main",
        "--keyring=/usr/share/keyrings", '--aptopt=Acquire::Check-Valid-Until "false"',
        f"--include={','.join(packages)}", suite, str(archive), *mirror,
    ]  # fmt: skip
    done = subprocess.run(
        command,
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"mmdebstrap failed:\n{done.stderr.strip()[-2000:]}")
    root.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", root, "--exclude=./dev/*"], check=True)
    archive.unlink()
    for name in _UNUSED:
        path = root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for name in ("dev", "proc", "sys", "tmp", "root", "models"):
        (root / name).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (root / "etc/group").write_text("root:x:0:\n")
