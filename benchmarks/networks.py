"""Cost of a container's own network per request: `hardening: strict` beside the host's network.

    make bench-networks      (or: python -m benchmarks.networks --rounds 3 --requests 2000)

On one virtual host, in turns: the same service behind the same proxy, deployed each way, asked from
outside for the shortest answer that there is (its list of models), over one connection that is kept
and over a new one each time. The fake answers at once, so nearly all of it is the way there.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from lab import fleet
from lab.holding import held
from lab.layout import HOSTS

HOST = HOSTS[0]
PORT = 8000
BIN = Path(sys.executable).parent
RESULTS = Path(".sparkwright/benchmark")
KINDS = ("default", "strict")
_SERVICES = """
sparks[0][1]["services"] = {{
    "qwen36": {{
        "recipe": "qwen36-35b-a3b-heretic-dflash", "port": {port}, "proxy": True,
        "hardening": "{kind}",
    }},
}}
"""


def main() -> int:
    """Measure and print medians, the slowest of a hundred, and what strict adds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=2000)
    arguments = parser.parse_args()
    fleet.up()
    RESULTS.mkdir(parents=True, exist_ok=True)
    seconds: dict[str, dict[str, list[float]]] = {kind: {"kept": [], "new": []} for kind in KINDS}
    for _ in range(arguments.rounds):
        for kind in KINDS:
            _deploy(kind)
            for way, result in seconds[kind].items():
                _ask(200, keep=way == "kept")  # both ends are warm
                result += _ask(arguments.requests, keep=way == "kept")
    for way, parts in (("kept", "a connection that is kept"), ("new", "a new connection")):
        print(parts)
        middle = {}
        for kind in KINDS:
            ordered = sorted(seconds[kind][way])
            middle[kind] = statistics.median(ordered)
            slow = ordered[len(ordered) * 99 // 100]
            print(f"  {kind:10}{middle[kind] * 1e6:8.0f} us, 99 of 100 below {slow * 1e6:6.0f} us")
        print(f"  strict adds {(middle['strict'] - middle['default']) * 1e6:+.0f} us")
    (RESULTS / "networks.json").write_text(json.dumps(seconds) + "\n")
    return 0


def _deploy(kind: str) -> None:
    inventory = RESULTS / f"networks_{kind}.py"
    text = Path("inventory/virtual.py").read_text() + _SERVICES.format(port=PORT, kind=kind)
    inventory.write_text(text)
    done = subprocess.run(
        [
            *(BIN / "pyinfra", "--yes", "--limit", HOST.name),
            *("--data", 'rollout={"soak_seconds": 0}', inventory, "deploy.py"),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])


def _ask(requests: int, *, keep: bool) -> list[float]:
    """Seconds of each request."""
    key = Path(".sparkwright/api_key").read_text().strip()
    headers = {"Authorization": f"Bearer {key}"}
    result = []
    connection = http.client.HTTPConnection(HOST.address, PORT, timeout=10)
    for _ in range(requests):
        started = time.perf_counter()
        connection.request("GET", "/v1/models", headers=headers)
        answer = connection.getresponse()
        answer.read()
        result.append(time.perf_counter() - started)
        if answer.status != 200:
            raise SystemExit(f"the service answers HTTP {answer.status}")
        if not keep:
            connection.close()  # opened again by the next request
    connection.close()
    return result


if __name__ == "__main__":
    with held("bench: networks"):
        sys.exit(main())
