"""Streams of completions at an engine's socket or a proxy's port; prints one line of JSON.

The program runs on a host, from standard input: `python3 - TARGET STREAMS ROUNDS TOKENS <
streams.py`, with the key in KEY and the model's name in MODEL. TARGET is the path of a socket, or
ADDRESS:PORT, or https://ADDRESS:PORT, or several of them with commas, which get requests in turn.
Each stream asks ROUNDS times, one request after the other, each on a new connection, and counts the
events that carry a token. Several processes share many streams, so that the client is not the
bottleneck. The standard library is enough.
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


async def _connection(target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if target.startswith("/"):
        return await asyncio.open_unix_connection(target)
    address, _, port = target.removeprefix("https://").rpartition(":")
    context = None
    if target.startswith("https://"):  # only the cost of TLS matters here
        context = ssl._create_unverified_context()
    return await asyncio.open_connection(address, int(port), ssl=context)


async def _request(target: str, tokens: int, number: int) -> tuple[float, float, int]:
    """Seconds to the first token and to the end, and tokens."""
    body = json.dumps({"model": os.environ["MODEL"], "prompt": f"{number} This", "stream": True,
                       "max_tokens": tokens, "ignore_eos": True, "temperature": 0})  # fmt: skip
    head = (f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Authorization: Bearer {os.environ['KEY']}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")  # fmt: skip
    targets, started = target.split(","), time.perf_counter()
    reader, writer = await _connection(targets[number % len(targets)])
    writer.write((head + body).encode())
    first, count, status = 0.0, 0, await reader.readline()
    if b" 200 " not in status:
        raise SystemExit(f"{target}: {status.decode().strip()} {await reader.read(500)!r}")
    async for line in reader:
        if line.startswith(b'data: {"'):
            first = first or time.perf_counter() - started
            count += 1
    writer.close()
    return first, time.perf_counter() - started, count


async def _group(
    target: str, numbers: range, rounds: int, tokens: int, begin: float
) -> tuple[float, list[tuple[float, float, int]]]:
    async def stream(number: int) -> list[tuple[float, float, int]]:
        return [await _request(target, tokens, number * 1000 + turn) for turn in range(rounds)]

    await asyncio.gather(*(_request(target, 2, number) for number in numbers[:8]))
    await asyncio.sleep(begin - time.perf_counter())
    results = [item for part in await asyncio.gather(*map(stream, numbers)) for item in part]
    return time.perf_counter(), results


def _process(*arguments: Any) -> tuple[float, list[tuple[float, float, int]]]:
    return asyncio.run(_group(*arguments))


def measure(target: str, streams: int, rounds: int, tokens: int) -> dict[str, object]:
    """Run the streams; the throughput counts all tokens over the whole time."""
    groups = [range(start, min(start + 32, streams)) for start in range(0, streams, 32)]
    begin = time.perf_counter() + 2  # a common start, after first requests
    with multiprocessing.get_context("fork").Pool(len(groups)) as pool:
        parts = pool.starmap(_process, [(target, part, rounds, tokens, begin) for part in groups])
    seconds = max(end for end, _ in parts) - begin
    results = [item for _, part in parts for item in part]
    firsts = sorted(first for first, _, _ in results)
    return {
        "target": target, "streams": streams, "requests": len(results), "tokens": tokens,
        "processes": len(groups), "seconds": round(seconds, 3),
        "tokens_per_second": round(sum(count for _, _, count in results) / seconds, 1),
        "first_token_ms": round(statistics.median(firsts) * 1e3, 3),
        "first_token_p95_ms": round(firsts[int(len(firsts) * 0.95)] * 1e3, 3),
    }  # fmt: skip


if __name__ == "__main__":
    name, *numbers = sys.argv[1:]
    print(json.dumps(measure(name, *map(int, numbers))))
