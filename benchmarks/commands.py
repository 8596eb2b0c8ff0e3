"""Time of every command as a process, from its start to its end.

    python -m benchmarks.commands [--fleet inventory/virtual.py] [--write]

Commands that contact no host run in a new site of four hosts. --fleet names an inventory of
running, deployed hosts, for measurements of commands that only observe hosts. --write puts the
table into docs/performance.md.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.generate.markdown import table
from lab import example_report

_ROOT = Path(__file__).resolve().parents[1]
PAGE = _ROOT / "docs/performance.md"
_MARKS = re.compile(r"(<!-- commands: measured -->\n).*?(<!-- /commands -->)", re.S)
_HOSTS = "--host spark-1 --gpu gb10 --host spark-2 --gpu gb10 --host rtx-1 --gpu rtx5090 " \
    "--host rtx-2 --gpu rtx5090"  # fmt: skip
#: Arguments of a command -> seconds that the command may take; None without a promised time.
HERE: dict[str, float | None] = {
    "--help": 0.2, "--version": 0.2, "status --help": None, "check": 0.3, "check --json": 0.3,
    "plan": None, "lock --check": None, "endpoints": None, "monitoring --output monitoring": None,
    "catalog list": None, "catalog show vllm-openai": None,
    "advise chat": None, "report": None,
}  # fmt: skip
FLEET = ("status", "history", "diff", "models list", "key list", "doctor", "verify")


def main() -> int:
    """Measure, print the table, and write it on request."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fleet", type=Path, help="inventory of running, deployed hosts")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", action="store_true", help="write into docs/performance.md")
    arguments = parser.parse_args()
    rows = list(_here(arguments.rounds))
    if arguments.fleet:
        rows += [_row(f"{item} {arguments.fleet}", item, None, Path.cwd(), 3) for item in FLEET]
    text = table(("command, seconds", "median", "best", "at most"), rows)
    print(text)
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(_MARKS.sub(rf"\g<1>{text}\n\g<2>", page), encoding="utf-8")
    return 0


def _here(rounds: int) -> Iterator[tuple[str, ...]]:
    with tempfile.TemporaryDirectory(prefix="sparkwright-commands-") as folder:
        site = Path(folder) / "site"
        _seconds(f"init {site} {_HOSTS}".split(), Path(folder))
        example_report.write(site / ".sparkwright", hosts=4, runs=6)
        for arguments, most in HERE.items():
            yield _row(arguments, arguments, most, site, rounds)


def _row(message: str, name: str, most: float | None, folder: Path, rounds: int) -> tuple[str, ...]:
    _seconds(message.split(), folder)  # compiled files stay
    seconds = [_seconds(message.split(), folder) for _ in range(rounds)]
    bound = f"{most:g}" if most else ""
    return f"`{name}`", f"{statistics.median(seconds):.2f}", f"{min(seconds):.2f}", bound


def _seconds(arguments: Sequence[str], folder: Path) -> float:
    # Python keeps compiled files outside of the checkout, as in an installation by pip.
    cache = str(Path(tempfile.gettempdir()) / "sparkwright-commands-compiled")
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "sparkwright", *arguments], cwd=folder, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds = time.monotonic() - started
    if done.returncode not in (0, 1):  # 1: slow host, or no lock
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
