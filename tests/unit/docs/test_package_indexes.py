"""Packages come from each machine's configured sources: no package index is named in the
project.
"""

import subprocess

from tests.unit.docs.markdown import ROOT

#: Names without their dots, so that this file names no index.
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
