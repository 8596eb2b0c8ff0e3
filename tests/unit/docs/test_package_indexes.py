"""Packages come from wherever a machine is set up to take them: no package index is named here."""

import subprocess
from pathlib import Path

import pytest

from lab import base

ROOT = Path(__file__).parents[3]
#: Without their dots, so that this file names none of them.
INDEXES = (
    "deb debian org", "snapshot debian org", "archive ubuntu com", "ports ubuntu com", "pypi org",
    "files pythonhosted org", "registry npmjs org", "proxy golang org", "crates io",
)  # fmt: skip


def test_no_file_names_the_host_of_a_package_index() -> None:
    patterns = [option for name in INDEXES for option in ("-e", name.replace(" ", "."))]
    arguments = ["git", "grep", "--fixed-strings", "-I", "-n", *patterns]
    listing = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert listing.stdout == ""
    assert listing.returncode == 1, listing.stderr


def apt_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    program = tmp_path / "apt-get"
    program.write_text("#!/bin/sh\n" + "".join(f"echo {address}\n" for address in addresses))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_the_lab_takes_the_mirror_of_this_machine_or_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = "http://mirror.example/debian/"
    apt_get(tmp_path, monkeypatch, "http://tools.example/apt/", f"{mirror[:-1]}-security/", mirror)
    assert base.debian_mirror() == mirror
    apt_get(tmp_path, monkeypatch, "http://tools.example/apt/")
    with pytest.raises(SystemExit, match="no Debian mirror"):
        base.debian_mirror()
