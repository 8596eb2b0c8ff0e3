"""A server with OpenAI's API for measuring: 5,000 tokens a second for all streams together.

``python -m benchmarks.gateways.token_stream`` # 18101: small, 18102: large, 18103: dies, every time
"""

import asyncio
import json

RATE = 5000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n" \
    b"Transfer-Encoding: chunked\r\n\r\n"  # fmt: skip
MODELS = {18101: "small", 18102: "large"}
STREAMS = {"now": 0}


def event(model: str, **fields: object) -> bytes:
    """A chunk of a streamed answer."""
    data = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    text = b"data: " + json.dumps(data | fields, separators=(",", ":")).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(text), text)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a request with tokens, at this stream's share of the rate."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = head.partition(b"content-length: ")[2].split()
        body = json.loads(await reader.readexactly(int(length[0])) if length else b"{}")
        model = MODELS[writer.get_extra_info("sockname")[1]]
        writer.write(HEAD)
        delta = {"index": 0, "delta": {"content": "one "}, "finish_reason": None}
        token, count = event(model, choices=[delta]), body.get("max_tokens", 1)
        STREAMS["now"] += 1
        due = asyncio.get_running_loop().time()
        for _ in range(count):
            writer.write(token)
            due += STREAMS["now"] / RATE
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        STREAMS["now"] -= 1
        if "stream_options" in body:
            writer.write(event(model, choices=[], usage={"completion_tokens": count}))
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
    except (ConnectionError, asyncio.IncompleteReadError, KeyError, ValueError):
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serve until a signal ends the program."""
    for port in (*MODELS, 18103):
        await asyncio.start_server(answer, "127.0.0.1", port, limit=1 << 20, backlog=1024)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
