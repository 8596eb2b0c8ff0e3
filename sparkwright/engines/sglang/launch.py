"""Start SGLang in its container: on a Unix socket, and with a key that SGLang never sees.

The text runs as ``python3 -c`` before the engine's arguments. SGLang 0.5.15 to 0.5.23 listens on
TCP alone, takes its API key only as an argument, and logs its arguments with the key. SGLang serves
by uvicorn; here each server gets the socket, and a check of the key before the engine.
"""

import hmac
import os
import runpy
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

#: The key of every request except requests to OPEN; a follower has none, and refuses all requests.
KEY = os.environ.pop("SGLANG_SERVER_KEY", "")
#: Paths that SGLang itself answers without a key.
OPEN = ("/health", "/metrics")


def guarded(app: Any) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """Return an application that answers 401 without the key."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        header = dict(scope.get("headers", ())).get(b"authorization", b"")
        authorized = bool(KEY) and hmac.compare_digest(header, b"Bearer " + KEY.encode())
        if scope["type"] == "lifespan" or authorized or scope["path"] in OPEN:
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            kind = (b"content-type", b"application/json")
            await send({"type": "http.response.start", "status": 401, "headers": [kind]})
            await send({"type": "http.response.body", "body": b'{"error": "Unauthorized"}'})

    return call


def main() -> None:
    """Start the engine with the arguments that follow."""
    place: dict[str, str] = {}
    if "--uds" in sys.argv:
        index = sys.argv.index("--uds")
        place = {"uds": sys.argv.pop(index + 1)}
        del sys.argv[index]
    uvicorn: Any = import_module("uvicorn")
    build = uvicorn.Config.__init__

    def config(self: Any, app: Any, **options: Any) -> None:
        if isinstance(app, str):  # further processes would import it by its name, unguarded
            raise SystemExit("SGLang: one process of HTTP alone: leave tokenizer_worker_num out")
        build(self, guarded(app), **{**options, **place})

    uvicorn.Config.__init__ = config
    os.environ.pop("SGLANG_RUST_SERVER", None)  # a server without uvicorn
    runpy.run_module("sglang.launch_server", run_name="__main__")


if __name__ == "__main__":
    main()
