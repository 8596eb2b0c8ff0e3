"""Candidate: a program behind HAProxy that reads `model`, and counts tokens. The program needs only
the standard library.

``python -m benchmarks.gateways.reader RUN`` # listens at RUN/reader.sock, calls RUN/models.sock
"""

import asyncio
import json
import re
import sys

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
_USAGE = re.compile(rb'data: \{[^\n]*"choices": ?\[\][^\n]*"completion_tokens": ?(\d+)[^\n]*\n\n')
_ASK = b'{"stream_options":{"include_usage":true},'
_UNKNOWN = b'{"error": {"message": "The models are small, large, dies.", "code": 404}}'


async def request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read a whole request from HAProxy, and return it to HAProxy with its model in a header."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        asked = json.loads(body)
        if asked.get("model") not in ("small", "large", "dies"):
            line = f"HTTP/1.1 404 Not Found\r\nContent-Length: {len(_UNKNOWN)}\r\n\r\n"
            writer.write(line.encode() + _UNKNOWN)
            return
        added = bool(asked.get("stream")) and "stream_options" not in asked
        body = _ASK + body.partition(b"{")[2] if added else body
        lines = f"\r\nX-Model: {asked['model']}\r\nContent-Length: {len(body)}".encode()
        answer, engine = await asyncio.open_unix_connection(f"{sys.argv[1]}/models.sock")
        engine.writelines((_LENGTH.sub(lines, head, count=1), body))
        writer.write(await answer.readuntil(b"\r\n\r\n"))
        await pass_on(answer, writer, added)
        engine.close()
    except (ConnectionError, asyncio.IncompleteReadError, ValueError, RecursionError):
        pass
    finally:
        writer.close()


async def pass_on(answer: asyncio.StreamReader, writer: asyncio.StreamWriter, added: bool) -> None:
    """Forward a stream's chunks, without an event of usage that the client did not request."""
    while size := int(line := await answer.readuntil(b"\r\n"), 16):
        data = await answer.readexactly(size + 2)
        kept = _USAGE.sub(b"", data) if added else data
        writer.write(line + data if kept == data else b"%x\r\n%s" % (len(kept) - 2, kept))
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def main() -> None:
    """Serve until a signal ends the program."""
    path = f"{sys.argv[1]}/reader.sock"
    async with await asyncio.start_unix_server(
        request, path, limit=1 << 20, backlog=1024
    ) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
