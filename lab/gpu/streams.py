"""Stream completions at an engine's socket or a proxy's port; print one line of JSON.

The program runs on a host, from standard input: `python3 - TARGET STREAMS ROUNDS TOKENS <
streams.py`, with the key in KEY and the model's name in MODEL. TARGET is the path of a socket, or
ADDRESS:PORT, or https://ADDRESS:PORT, or several of them with commas, which get requests in turn.
Each stream sends ROUNDS requests on its own connection, which stays open as OpenAI's clients keep
it, and counts the events that carry a token. Several processes share many streams, so that the
client is not the bottleneck. The standard library is enough.
"""

import asyncio
import json
import multiprocessing
import os
import ssl
import statistics
import sys
import time
from typing import Any

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _connection(target: str, context: ssl.SSLContext) -> Connection:
    if target.startswith("/"):
        return await asyncio.open_unix_connection(target)
    address, _, port = target.removeprefix("https://").rpartition(":")
    encrypted = context if target.startswith("https://") else None
    return await asyncio.open_connection(address, int(port), ssl=encrypted)


async def _request(connection: Connection, tokens: int, number: int) -> tuple[float, float, int]:
    """Seconds to the first token and to the end, and tokens."""
    body = json.dumps({"model": os.environ["MODEL"], "prompt": f"{number} This", "stream": True,
                       "max_tokens": tokens, "ignore_eos": True, "temperature": 0})  # fmt: skip
    head = (f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {os.environ['KEY']}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")  # fmt: skip
    reader, writer = connection
    started = time.perf_counter()
    writer.write((head + body).encode())
    first, count, status = 0.0, 0, await reader.readline()
    if b" 200 " not in status:
        raise SystemExit(f"{status.decode().strip()} {await reader.read(500)!r}")
    async for line in reader:
        if line.startswith(b'data: {"'):
            first = first or time.perf_counter() - started
            count += 1
        elif line == b"0\r\n":  # the last chunk
            await reader.readline()
            break
    return first, time.perf_counter() - started, count


async def _group(
    target: str, numbers: range, rounds: int, tokens: int, begin: float
) -> tuple[float, float, list[tuple[float, float, int]]]:
    """The end, the longest first request, and all measured requests."""
    context = ssl._create_unverified_context()  # only the cost of TLS matters here

    waits = []

    async def stream(number: int) -> list[tuple[float, float, int]]:
        connections = [await _connection(name, context) for name in target.split(",")]
        for connection in connections:
            waits.append((await _request(connection, 2, number))[1])
        await asyncio.sleep(begin - time.perf_counter())
        turns = [(connections[turn % len(connections)], turn) for turn in range(rounds)]
        return [await _request(way, tokens, number * 1000 + turn) for way, turn in turns]

    results = [item for part in await asyncio.gather(*map(stream, numbers)) for item in part]
    return time.perf_counter(), max(waits), results


def _process(*arguments: Any) -> tuple[float, float, list[tuple[float, float, int]]]:
    return asyncio.run(_group(*arguments))


def measure(target: str, streams: int, rounds: int, tokens: int) -> dict[str, object]:
    """Run the streams; the throughput counts all requested tokens over the whole time.

    Under load, vLLM sends several tokens in an event.
    """
    groups = [range(start, min(start + 32, streams)) for start in range(0, streams, 32)]
    begin = time.perf_counter() + 4  # a common start, after first requests
    with multiprocessing.get_context("fork").Pool(len(groups)) as pool:
        parts = pool.starmap(_process, [(target, part, rounds, tokens, begin) for part in groups])
    seconds = max(end for end, _, _ in parts) - begin
    results = [item for _, _, part in parts for item in part]
    firsts = sorted(first for first, _, _ in results)
    return {
        "target": target, "streams": streams, "requests": len(results), "tokens": tokens,
        "processes": len(groups), "seconds": round(seconds, 3),
        "first_request_seconds": round(max(wait for _, wait, _ in parts), 3),
        "tokens_per_second": round(len(results) * tokens / seconds, 1),
        "tokens_per_event": round(len(results) * tokens / sum(row[2] for row in results), 3),
        "first_token_ms": round(statistics.median(firsts) * 1e3, 3),
        "first_token_p95_ms": round(firsts[int(len(firsts) * 0.95)] * 1e3, 3),
    }  # fmt: skip


if __name__ == "__main__":
    name, *numbers = sys.argv[1:]
    print(json.dumps(measure(name, *map(int, numbers))))
