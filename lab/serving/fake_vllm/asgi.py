"""A fake for uvicorn, as far as SGLang uses it: Config and Server, over the fake's own HTTP server.

The image has this module as ``uvicorn``: the program that starts SGLang gives each server of
uvicorn a Unix socket and a check of the key (sparkwright/engines/sglang/launch.py).
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncGenerator
from typing import Any

from . import log
from .http_server import HttpServer, Request, Response
from .refusal import Refusal


class Config:
    """Application and address of a server."""

    def __init__(
        self, app: Any, *, host: str = "127.0.0.1", port: int = 8000, uds: str = "", **_: Any
    ) -> None:
        self.app, self.host, self.port, self.uds = app, host, port, uds


class Server:
    """Server of an application, until SIGTERM.

    Args:
        listener: a bound socket; None to bind the address of the configuration.
        patience: remaining seconds for running requests.
    """

    def __init__(
        self, config: Config, listener: socket.socket | None = None, patience: float = 5
    ) -> None:
        self._config, self._listener, self._patience = config, listener, patience

    def run(self) -> None:
        """Listen and answer."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        server, stop, loop = HttpServer(self._answer), asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        own = self._config
        log.uvicorn(f"Started server process [{os.getpid()}]")
        log.uvicorn("Waiting for application startup.")
        await server.start(self._listener or bind(own.uds or (own.host, own.port)))
        log.uvicorn("Application startup complete.")
        await stop.wait()
        log.uvicorn("Shutting down")
        await server.stop(self._patience)
        log.uvicorn("Waiting for application shutdown.")
        log.uvicorn("Application shutdown complete.")
        log.uvicorn(f"Finished server process [{os.getpid()}]")

    async def _answer(self, request: Request) -> Response:
        """The response of the application, streamed where it streams."""
        messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        headers = [
            (name.encode(), value.encode("latin-1")) for name, value in request.headers.items()
        ]
        scope = {"type": "http", "method": request.method, "path": request.path, "headers": headers}

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": request.body, "more_body": False}

        work = asyncio.ensure_future(self._config.app(scope, receive, messages.put))
        start, first = await messages.get(), await messages.get()
        given = {name.decode(): value.decode() for name, value in start["headers"]}
        kind = given.pop("content-type", None)
        if not first.get("more_body"):
            await work
            return Response(start["status"], first["body"], kind, vary=False, headers=given)

        async def pieces() -> AsyncGenerator[bytes, None]:
            message = first
            try:
                while message.get("more_body"):
                    yield message["body"]
                    message = await messages.get()
            finally:
                work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await work

        return Response(start["status"], pieces(), kind, vary=False, headers=given)


class DirectServer(Server):
    """Server of the fake's own application, without ASGI in between."""

    async def _answer(self, request: Request) -> Response:
        return await self._config.app.handle(request)  # type: ignore[no-any-return]


def bind(address: str | tuple[str, int]) -> socket.socket:
    """A socket at a path or at an address and port. Raises Refusal, also if a file exists at the
    path."""
    unix = isinstance(address, str)
    family = socket.AF_UNIX if unix else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except (OSError, OverflowError) as error:
        listener.close()
        raise Refusal(type(error).__name__, str(error)) from None
    return listener
