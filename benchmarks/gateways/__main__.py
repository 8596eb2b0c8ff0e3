"""Cost of a request whose engine a program chooses by `model`, compared with a direct request.

    ``python -m benchmarks.gateways [NAME=PROGRAM ...]``

PROGRAM is the path of a candidate: litellm=VENV/bin/litellm, production-stack=VENV/bin/vllm-router,
envoy=VENV/bin/envoy; HAProxy is this machine's program. All candidates listen on loopback; rounds
alternate. Times are medians in milliseconds; memory is measured in the first round. A negative
figure is the status of a failed answer; -1 means a broken connection.
"""

import asyncio
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from itertools import product
from pathlib import Path

import yaml

from docs.generate.markdown import table

HERE = Path(__file__).parent
ROUNDS, STREAMS, TOKENS = int(os.environ.get("ROUNDS", "5")), 64, 128
#: Ports with TLS. Each connection has its own handshake.
SECURE = set[int]()
TLS = ssl.create_default_context()
TLS.check_hostname, TLS.verify_mode = False, ssl.CERT_NONE
CERTIFICATE = (
    "openssl req -x509 -nodes -days 9 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
    "-subj /CN=bench -keyout {run}/tls.pem.key -out {run}/tls.pem"
)
IMAGES = {"1 KB": 1000, "1 MB": 10**6, "20 MB": 20 * 10**6}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" \
    b"Content-Type: application/json\r\nAuthorization: Bearer sk-bench\r\n" \
    b"Content-Length: %d\r\n\r\n"  # fmt: skip
Figures = defaultdict[str, list[float]]


def request(model: str, image: int = 0, tokens: int = 1, *, last: bool = False) -> bytes:
    """A chat with an image as a data URL, `model` first or last."""
    image_url = {"url": "data:;base64," + "A" * image}
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": image_url}]}]
    rest = {"messages": messages, "max_tokens": tokens, "stream": True}
    body = json.dumps(rest | {"model": model} if last else {"model": model} | rest).encode()
    return HEAD % len(body) + body


async def ask(port: int, text: bytes) -> tuple[float, bytes]:
    """Milliseconds to the first event, and the answer."""
    first, result, begun = -1.0, b"", time.perf_counter()
    try:
        secure = TLS if port in SECURE else None
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=secure)
        writer.write(text)
        while data := await asyncio.wait_for(reader.read(1 << 18), 20):
            result += data
            if first < 0 and b"data: " in result:
                first = (time.perf_counter() - begun) * 1000
        writer.close()
    except (OSError, TimeoutError):
        print(f"port {port}: connection broken after {len(result)} bytes", file=sys.stderr)
    status = int(result[9:12] or 1)
    return (first if status == 200 else -status), result


async def measure(port: int, pids: list[int], figures: Figures) -> None:
    """Measure one round of a candidate."""
    before, small = processor(pids), request("small")
    for _ in range(100):
        figures["first byte, alone"].append((await ask(port, small))[0])
    figures["CPU of a request"].append((processor(pids) - before) * 10)
    before, begun = processor(pids), time.perf_counter()
    answers = await asyncio.gather(
        *(ask(port, request("large", 0, TOKENS)) for _ in range(STREAMS))
    )
    seconds, tokens = time.perf_counter() - begun, sum(text.count(b'"one "') for _, text in answers)
    figures["first byte, 64 begun at once"] += [first for first, _ in answers]
    figures["tokens a second, 64 streams"].append(tokens / seconds)
    figures["CPU of 1,000 tokens"].append((processor(pids) - before) * 1e6 / (tokens or 1))
    await beside("64 streams", [request("large", 0, TOKENS)] * STREAMS, port, figures)
    for size, last in product(IMAGES, (False, True)):
        first, _ = await ask(port, request("large", IMAGES[size], last=last))
        figures[f"{size}, `model` {'last' if last else 'first'}"].append(first)
    await beside("4 of 20 MB", [request("large", IMAGES["20 MB"], last=True)] * 4, port, figures)
    if not figures["most memory, MB"]:
        figures["most memory, MB"].append(memory(pids[0]) if pids else 0)


async def beside(label: str, others: list[bytes], port: int, figures: Figures) -> None:
    """Send small requests, one after the other, while other requests are under way."""
    running = [asyncio.ensure_future(ask(port, text)) for text in others]
    await asyncio.sleep(0.2 if len(others) == STREAMS else 0)
    while not all(item.done() for item in running):
        figures[f"first byte beside {label}"].append((await ask(port, request("small")))[0])


def processor(pids: list[int]) -> float:
    """CPU time of processes, in seconds."""
    stats = [Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split() for pid in pids]
    return sum(int(stat[13]) + int(stat[14]) for stat in stats) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Peak memory of a process, in MB."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024


async def main() -> None:
    """Start all candidates, measure them alternately, and print the table."""
    run = tempfile.mkdtemp()
    places = {"here": HERE, "python": sys.executable, "run": run}
    places |= dict(item.split("=", 1) for item in sys.argv[1:])
    environment, quiet = {**os.environ, "HERE": str(HERE), "RUN": run}, subprocess.DEVNULL
    subprocess.run(CERTIFICATE.format(run=run).split(), check=True, capture_output=True)
    started = [subprocess.Popen((sys.executable, "-m", "benchmarks.gateways.token_stream"))]
    ports, pids = {}, {"direct": 0}
    figures: defaultdict[str, Figures] = defaultdict(lambda: defaultdict(list))
    try:
        for name, candidate in yaml.safe_load((HERE / "candidates.yaml").read_text()).items():
            command = candidate.get("command", "")
            if "{" + name + "}" in command and name not in places:
                continue
            if argv := command.format(**places).split():
                started.append(subprocess.Popen(argv, env=environment, stdout=quiet, stderr=quiet))
            ports[name] = candidate["port"]
            SECURE.update([candidate["port"]] if candidate.get("tls") else [])
            pids.setdefault(name, started[-1].pid)
            while (await ask(ports[name], request("small")))[0] < 0:
                await asyncio.sleep(0.5)
        for name in list(ports) * ROUNDS:
            both = [pids[name], pids["haproxy"]] if name.startswith("reader") else [pids[name]]
            await measure(ports[name], [pid for pid in both if pid], figures[name])
    finally:
        for process in started:
            process.terminate()
    rows = [
        [label, *(f"{statistics.median(figures[name][label]):.2f}" for name in ports)]
        for label in figures["direct"]
    ]
    print(table(("", *ports), rows))


if __name__ == "__main__":
    asyncio.run(main())
