"""Output of a run while it waits: bars of downloads, phases of a boot, the remaining watch time."""

import os
import pty
import re
import subprocess

from tests.fleet.bad_tags import NEW
from tests.fleet.downloads import HOST
from tests.fleet.site import Site, bare, inside

_SLOW = ("--data", "download_limit_mb=4")


def _on_a_terminal(site: Site, *arguments: str) -> str:
    """Output of a run on a terminal of 80 columns, without colours and movements of the cursor."""
    ours, its = pty.openpty()
    run = subprocess.Popen(
        site.command("--yes", *arguments), cwd=site.folder, stdin=subprocess.DEVNULL,
        stdout=its, stderr=its, env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(its)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # the last writer has ended
        pass
    assert run.wait(60) == 0, shown.decode()
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_progress_shows_downloads_and_a_boot(site: Site) -> None:
    site.power_on()
    site.repair()
    bare(HOST)
    boot = '"port": 8000, "environment": {"FAKE_VLLM_BOOT_SECONDS": "6"},'
    site.edit("group_data/sparks.py", '"port": 8000,', boot)
    try:
        shown = _on_a_terminal(site, "--limit", HOST, *_SLOW)
        bar = rf"\[{HOST}\] [━╸╺ ]+ 0\.\d\d of 0\.\d\d GB at \d+ MB/s from the internet"
        assert re.search(bar, shown), shown
        assert re.search(rf"\[{HOST}\] .*qwen36: capturing graphs for \d+ s\s", shown), shown
        kept = inside(HOST, "cat", "/opt/sparkwright/services/qwen36/boot.json")
        assert all(phase in kept for phase in ("weights into memory", "capturing graphs"))

        # Without a terminal, each new phase is a line with its duration in the previous boot.
        site.rollout(soak_seconds=6)
        run = site.deploy("--limit", HOST, "--data", f"image_tag={NEW}")
        restarted = site.sparkwright("restart", "inventory/virtual.py", HOST, "--yes")
    finally:
        site.reset()
    phase = r"qwen36: capturing graphs for \d+ s \(\d+ s last time\)"
    assert re.search(rf"\[{HOST}\] +{phase}", run.output), run.output
    assert re.search(rf"{HOST}: {phase}", restarted), restarted
    assert re.search(rf"\[{HOST}\] +watching for another \d+ s", run.output), run.output
    # A run sends no request for progress to an unchanged host.
    site.deploy("--limit", HOST)
    again = site.deploy("--limit", HOST)
    assert again.changed == set()
    assert again.host(HOST)["executions"] == 2
