"""`sparkwright chat` and `sparkwright top` on virtual hosts."""

import json
import re
import subprocess
import sys

from tests.fleet.site import GOOD, MACHINES, Site
from tests.fleet.traffic import Load

HOST = "spark-1"
#: An address in the lab's network without a host.
NOBODY = "10.213.77.99"


def _chat(site: Site, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sparkwright", "chat", "inventory/virtual.py", *arguments],
        cwd=site.folder, input="What is 17 + 25?", capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


def test_a_chat_is_answered_over_the_network_and_through_ssh(converged: Site) -> None:
    done = _chat(converged, "--host", HOST, "--model", "qwen36-fast")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert f"qwen36-fast at {HOST}\n" in done.stderr
    figures = r"first token after \d+ ms, [\d.]+ tokens/s, \d+ tokens"
    assert re.search(figures, done.stderr), done.stderr
    # Clients must use an address that this machine does not reach.
    done = _chat(converged, "--host", HOST, "--data", f"lan_address={NOBODY}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert f"at {HOST} through ssh\n" in done.stderr


def test_top_shows_the_load_and_a_host_that_does_not_answer(converged: Site) -> None:
    limit = [word for host in GOOD for word in ("--limit", host)]
    arguments = ("top", "inventory/virtual.py", "--once", *limit)
    with Load(MACHINES[HOST].address, 8000, converged.key):
        done = converged.call(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    result = {row["host"]: row for row in json.loads(done.stdout)}
    assert result[HOST]["tokens"] > 0
    assert set(result) == set(GOOD)
    for row in result.values():
        assert (row["service"], row["problem"]) == ("qwen36", "")
        assert row["temperature"] is not None
        assert 0 < row["used"] < row["total"]
    converged.edit("inventory/virtual.py", MACHINES["spark-2"].address, NOBODY)
    try:
        done = converged.call(*arguments)
    finally:
        converged.restore("inventory/virtual.py")
    assert done.returncode == 1
    assert re.search(r"^ *spark-2 +- +- ", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^ *spark-2: not reached: ", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^ *spark-1 +qwen36 +\d", done.stdout, re.MULTILINE), done.stdout
