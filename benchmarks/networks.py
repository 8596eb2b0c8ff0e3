"""Cost of a container that is reached by a socket, compared with a container in the host's
network.

    make bench-networks      (or: python -m benchmarks.networks --rounds 3 --requests 2000)

On one virtual host, HAProxy sends the same requests alternately to the service's socket and to a
second container of the same image, started by hand with the host's network and a port of loopback.
Requests come from outside, for the shortest answer (the list of models) and for streams, which give
the time to the first token and tokens a second. The fake lists models without delay, so nearly all
of the measured time is transport.
"""

import argparse
import http.client
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks import switching
from benchmarks.switching import HOME, HOST, NAME
from lab import fleet, machines
from lab.holding import held

PORT = 8000
RESULTS = Path(".sparkwright/benchmark")
CONFIG = "/opt/sparkwright/gateway/haproxy.cfg"
SERVERS = {
    "socket": "unix@/run/sparkwright-engines/qwen36/http.sock",
    "host's network": "127.0.0.1:18000",
}
SERVICES = json.dumps({"qwen36": {"recipe": "qwen36-35b-a3b-heretic-dflash", "port": PORT}})


def main() -> int:
    """Measure and print medians, and the socket's additional time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=2000)
    arguments = parser.parse_args()
    fleet.up()
    RESULTS.mkdir(parents=True, exist_ok=True)
    switching.deploy("2026-07-01-v0.24.0", SERVICES)
    measures = ("list of models", "first token", "tokens a second")
    values: dict[str, dict[str, list[float]]] = {
        kind: {name: [] for name in measures} for kind in SERVERS
    }
    _start_by_hand()
    try:
        for _ in range(arguments.rounds):
            for kind, result in values.items():
                _send_to(kind)
                _lists(200)  # client and server are warm
                result[measures[0]] += _lists(arguments.requests)
                for first, rate in _streams(arguments.requests // 40):
                    result[measures[1]].append(first)
                    result[measures[2]].append(rate)
    finally:
        _send_to("socket")
        _inside("docker", "rm", "-f", NAME)
    for name in measures:
        socket, host = (statistics.median(values[kind][name]) for kind in SERVERS)
        if name == measures[2]:
            print(
                f"{name:16} socket {socket:9.1f}, host's network {host:9.1f}: {socket / host:.3f}x"
            )
        else:
            print(f"{name:16} socket {socket * 1e6:6.0f} us, host's network {host * 1e6:6.0f} us: "
                  f"{(socket - host) * 1e6:+.0f} us")  # fmt: skip
    (RESULTS / "networks.json").write_text(json.dumps(values) + "\n")
    return 0


def _inside(*arguments: str) -> str:
    done = machines.inside(HOST, list(arguments))
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def _start_by_hand() -> None:
    compose = yaml.safe_load(_inside("cat", f"{HOME}/current/compose.yaml"))
    service = compose["services"]["engine"]
    command, at = service["command"], service["command"].index("--uds")
    service["command"] = [
        *command[:at],
        "--host",
        "127.0.0.1",
        "--port",
        "18000",
        *command[at + 2 :],
    ]
    _inside(*switching.docker_run(service))
    until = "until curl -fs http://127.0.0.1:18000/health; do sleep 0.2; done"
    _inside("timeout", "60", "sh", "-c", until)


def _send_to(kind: str) -> None:
    script = f"s|server self [^ ]*|server self {SERVERS[kind]}|"
    _inside("sh", "-c", f"sed -i '{script}' {CONFIG} && systemctl reload sparkwright-gateway")
    time.sleep(6)  # HAProxy needs two health checks to use the server again


def _headers() -> dict[str, str]:
    key = Path(".sparkwright/api_key").read_text().strip()
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def _lists(requests: int) -> list[float]:
    """Seconds of each request for the list of models, over one connection."""
    result = []
    connection = http.client.HTTPConnection(HOST.address, PORT, timeout=60)
    for _ in range(requests):
        started = time.perf_counter()
        connection.request("GET", "/v1/models", headers=_headers())
        answer = connection.getresponse()
        answer.read()
        result.append(time.perf_counter() - started)
        if answer.status != 200:
            raise SystemExit(f"the service answers HTTP {answer.status}")
    connection.close()
    return result


def _streams(requests: int) -> Iterator[tuple[float, float]]:
    """Seconds to the first token of each stream, and its tokens a second."""
    body = {"model": "qwen36-fast", "prompt": "1 2 3", "max_tokens": 200, "stream": True}
    for _ in range(requests):
        connection = http.client.HTTPConnection(HOST.address, PORT, timeout=60)
        started = time.perf_counter()
        connection.request("POST", "/v1/completions", json.dumps(body), _headers())
        answer = connection.getresponse()
        times = [time.perf_counter() for line in answer if line.startswith(b"data: {")]
        connection.close()
        yield times[0] - started, len(times) / (times[-1] - started)


if __name__ == "__main__":
    with held("bench: networks"):
        sys.exit(main())
