"""A fake for Open WebUI: its page, its health, and chats that it passes to the address.

The fake has no accounts and no websockets. ``python3 -m uvicorn`` starts the fake, as it starts
Open WebUI.
"""

import asyncio
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path

from .asgi import bind
from .http_server import HttpServer, Request, Response

DATA = Path("/app/backend/data")
PAGE = b"<!doctype html><title>Open WebUI (a fake)</title>"


async def _answer(request: Request) -> Response:
    if request.path == "/health":
        return Response(200, b'{"status": true}')
    if request.path == "/":
        return Response(200, PAGE, "text/html")
    if (request.method, request.path) == ("POST", "/api/chat/completions"):
        return await asyncio.to_thread(_passed_on, request.body)
    return Response(404, b'{"detail": "Not Found"}')


def _passed_on(body: bytes) -> Response:
    headers = {
        "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}",
        "Content-Type": "application/json",
    }
    url = f"{os.environ['OPENAI_API_BASE_URL']}/chat/completions"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as got:
            return Response(got.status, got.read())
    except urllib.error.HTTPError as error:
        return Response(error.code, error.read())


async def _serve(path: Path) -> None:
    stop, server = asyncio.Event(), HttpServer(_answer)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    path.unlink(missing_ok=True)
    listener = bind(str(path))
    path.chmod(0o666)
    await server.start(listener)
    await stop.wait()
    await server.stop(5)


def main(arguments: list[str]) -> int:
    """Serve until SIGTERM, at the socket that the command line names."""
    (DATA / "webui.db").touch()
    asyncio.run(_serve(Path(arguments[arguments.index("--uds") + 1])))
    return 0
