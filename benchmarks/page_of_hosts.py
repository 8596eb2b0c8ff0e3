"""Time to read, judge and render the page of many hosts, and the size of the page.

    python -m benchmarks.page_of_hosts --hosts 100 --runs 20

The fleet is invented (``lab.example_report``): each host has one service, and each result has 60
loads. The page takes the newest result of a service, so more runs cost nothing.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab import example_report


def main() -> int:
    """Write the files, then run the command as a user does; print its best and worst time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sparkwright-report-") as folder:
        directory = Path(folder)
        example_report.write(directory, hosts=arguments.hosts, runs=arguments.runs)
        files = sum(1 for _ in directory.rglob("*.json"))
        stored = sum(path.stat().st_size for path in directory.rglob("*.json"))
        seconds = sorted(_measure(directory) for _ in range(arguments.rounds))
        page = directory / "report.html"
        print(f"{arguments.hosts} hosts, {files} files, {stored / 1e6:.1f} MB")
        print(f"report: {seconds[0]:.2f} to {seconds[-1]:.2f} s in {arguments.rounds} rounds")
        print(f"page: {page.stat().st_size / 1e6:.1f} MB")
    return 0


def _measure(directory: Path) -> float:
    command = [sys.executable, "-m", "sparkwright", "report"]
    command += ["--results", str(directory / "bench")]
    command += ["--last-run", str(directory / "last-run.json")]
    command += ["--status", str(directory / "status.json")]
    command += ["--output", str(directory / "report.html")]
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    if done.returncode not in (0, 1):  # 1: the fleet has a slow and a failed host
        raise SystemExit(done.stderr)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
