"""Routes of vLLM's developer mode for sleep and wake-up, as lab/gpu/sleep.py recorded them."""

import json
import os
from collections.abc import Awaitable, Callable

from .errors import ApiError
from .http_server import Request, Response

#: Parts of a deep sleep; each comes back by a separate request.
_PARTS = ("weights", "kv_cache")
Routes = dict[str, Callable[[Request], Awaitable[Response]]]


class Sleep:
    """An engine's sleep: the parts that it has freed."""

    def __init__(self) -> None:
        self._parts: set[str] = set()
        self._empty = False

    def check(self) -> None:
        """Refuse to generate while parts are freed, and without weights after a deep sleep."""
        if self._parts or self._empty:
            raise ApiError(500, "InternalServerError", "FAKE: the engine sleeps")

    def routes(self) -> tuple[Routes, Routes]:
        """Routes for GET and POST; empty without the developer mode."""
        if os.environ.get("VLLM_SERVER_DEV_MODE") != "1":
            return {}, {}
        post: Routes = {
            "/sleep": self._sleep,
            "/wake_up": self._wake,
            "/collective_rpc": self._call,
        }
        return {"/is_sleeping": self._state}, post

    async def _state(self, _: Request) -> Response:
        return Response(200, json.dumps({"is_sleeping": bool(self._parts)}).encode())

    async def _sleep(self, request: Request) -> Response:
        self._parts, self._empty = {*_PARTS}, request.query == "level=2"
        return Response(200, b"", content_type=None)

    async def _wake(self, request: Request) -> Response:
        self._parts -= {request.query.removeprefix("tags=")} if request.query else {*_PARTS}
        return Response(200, b"", content_type=None)

    async def _call(self, request: Request) -> Response:
        if "weights" in self._parts or json.loads(request.body) != {"method": "reload_weights"}:
            return Response(500, b"")
        self._empty = False
        return Response(200, b'{"results":[null]}')
