"""Streams of completions at an engine's socket or a proxy's port; prints one line of JSON.

The program runs on a host, from standard input: `python3 - TARGET STREAMS ROUNDS TOKENS <
streams.py`, with the key in KEY and the model's name in MODEL. TARGET is the path of a socket, or
ADDRESS:PORT, or https://ADDRESS:PORT, or several of them with commas, which get requests in turn.
Each stream sends ROUNDS requests on its own connection, which stays open as OpenAI's clients keep
it. First requests differ in length, an eighth of TOKENS or more, since streams that end together
would measure one batch of new requests. Throughput counts from the end of the longest first request
until the first stream ends. Several processes share many streams, so that the client is not the
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
from typing import Any, NamedTuple

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Request(NamedTuple):
    """Times of a request in seconds, its tokens, and the events that carried tokens."""

    start: float
    first: float
    end: float
    tokens: int
    events: int


async def _connection(target: str, context: ssl.SSLContext) -> Connection:
    if target.startswith("/"):
        return await asyncio.open_unix_connection(target)
    address, _, port = target.removeprefix("https://").rpartition(":")
    encrypted = context if target.startswith("https://") else None
    return await asyncio.open_connection(address, int(port), ssl=encrypted)


async def _request(connection: Connection, tokens: int, number: int) -> Request:
    body = json.dumps({"model": os.environ["MODEL"], "prompt": f"{number} This", "stream": True,
                       "max_tokens": tokens, "ignore_eos": True, "temperature": 0})  # fmt: skip
    head = (f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {os.environ['KEY']}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n")  # fmt: skip
    reader, writer = connection
    started = time.perf_counter()
    writer.write((head + body).encode())
    first, events, status = 0.0, 0, await reader.readline()
    if b" 200 " not in status:
        # Not SystemExit, which would end a process of the pool without an answer to the pool.
        raise RuntimeError(f"{status.decode().strip()} {await reader.read(500)!r}")
    async for line in reader:
        if line.startswith(b'data: {"'):
            first = first or time.perf_counter()
            events += 1
        elif line == b"0\r\n":  # the last chunk
            await reader.readline()
            break
    return Request(started, first, time.perf_counter(), tokens, events)


async def _group(
    target: str, numbers: range, rounds: int, tokens: int, begin: float
) -> tuple[float, list[list[Request]]]:
    """Seconds of the longest request before the measurement, and each stream's requests."""
    context = ssl._create_unverified_context()  # only the cost of TLS matters here
    names, waits = target.split(","), []

    async def stream(number: int) -> list[Request]:
        connections = [await _connection(name, context) for name in names]
        for connection in connections:
            request = await _request(connection, 2, number)
            waits.append(request.end - request.start)
        await asyncio.sleep(begin - time.perf_counter())
        result = []
        for turn in range(rounds):
            length = tokens if turn else max(tokens * (number % 8 + 1) // 8, 2)
            result.append(
                await _request(connections[turn % len(names)], length, number * 1000 + turn)
            )
        return result

    streams = await asyncio.gather(*map(stream, numbers))
    return max(waits), streams


def _process(*arguments: Any) -> tuple[float, list[list[Request]]]:
    return asyncio.run(_group(*arguments))


def measure(target: str, streams: int, rounds: int, tokens: int) -> dict[str, object]:
    """Run the streams; tokens are counted by request, since under load an event has several."""
    groups = [range(start, min(start + 32, streams)) for start in range(0, streams, 32)]
    begin = time.perf_counter() + 4  # a common start, after first requests
    with multiprocessing.get_context("fork").Pool(len(groups)) as pool:
        parts = pool.starmap(_process, [(target, part, rounds, tokens, begin) for part in groups])
    ways = [way for _, part in parts for way in part]
    start, end = max(way[0].end for way in ways), min(way[-1].end for way in ways)
    requests = [request for way in ways for request in way]
    inside = sum(request.tokens * max(min(request.end, end) - max(request.start, start), 0)
                 / (request.end - request.start) for request in requests)  # fmt: skip
    firsts = sorted(request.first - request.start for way in ways for request in way[1:])
    between = [(row.end - row.first) / (row.tokens - 1) for way in ways for row in way[1:]]
    events = sum(request.events for request in requests)
    return {
        "target": target, "streams": streams, "requests": len(requests), "tokens": tokens,
        "processes": len(groups), "seconds": round(end - start, 3),
        "first_request_seconds": round(max(wait for wait, _ in parts), 3),
        "tokens_per_second": round(inside / (end - start), 1),
        "tokens_per_event": round(sum(request.tokens for request in requests) / events, 3),
        "first_token_ms": round(statistics.median(firsts) * 1e3, 3),
        "first_token_p95_ms": round(firsts[int(len(firsts) * 0.95)] * 1e3, 3),
        "token_ms": round(statistics.median(between) * 1e3, 3),
    }  # fmt: skip


if __name__ == "__main__":
    name, *numbers = sys.argv[1:]
    print(json.dumps(measure(name, *map(int, numbers))))
