"""A dry run writes nothing at all: not on a host, not in the site, not at home."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.site import GOOD, Site, fingerprint
from tests.fuzz.drawn_site import contents

_SPARKWRIGHT = (sys.executable, "-m", "sparkwright")


@pytest.mark.parametrize("tls", ["None", '"own"'])
def test_a_dry_run_writes_nothing_anywhere(converged: Site, tmp_path: Path, tls: str) -> None:
    """A second site of the same hosts, which has no key and no CA yet."""
    fresh, home = Site(tmp_path / "site"), tmp_path / "home"
    home.mkdir()
    with (fresh.folder / "group_data/all.py").open("a") as settings:
        settings.write(f"tls = {tls}\nkeys = {{'alice': {{}}}}\n")
    environment = {**os.environ, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    hosts = {host: fingerprint(host) for host in GOOD}
    before = contents(tmp_path)
    for arguments in (
        [*_SPARKWRIGHT, "check", "inventory/virtual.py"],
        [*_SPARKWRIGHT, "plan", "inventory/virtual.py"],
        fresh.command("--dry"),
        fresh.command("--dry", "--diff", "--limit", "spark-1"),
    ):
        done = subprocess.run(
            arguments, cwd=fresh.folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr  # hopper-1 is refused
        assert "Traceback" not in done.stderr
        assert contents(tmp_path) == before, arguments
    assert {host: fingerprint(host) for host in GOOD} == hosts
