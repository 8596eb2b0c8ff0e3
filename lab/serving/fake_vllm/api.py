"""The routes of vLLM's server, with the shapes of the real server's answers."""

import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from . import chat, completions, media, pooling
from .backend import Backend
from .errors import ApiError, bad_request
from .faults import Faults
from .http_server import Request, Response
from .identity import Identity
from .rank_link import Ranks
from .server_settings import Settings
from .shapes import new_id
from .text import compact, tokens_of

UNCOUNTED = ("/health", "/metrics", "/ping", "/version", "/load")

_JSON = "application/json"
_HTML = "text/html; charset=utf-8"


class Api:
    """The application: one handler for every request.

    Attributes:
        guarded: beginnings of the paths that need the API key. Other paths, such as /invocations,
            need no key.
        unguarded: paths among the guarded paths that need no key.
        rejection: body of the answer to a request without the key.
    """

    guarded: tuple[str, ...] = ("/v1", "/v2", "/inference")
    unguarded: tuple[str, ...] = ()
    rejection = b'{"error":"Unauthorized"}'

    def __init__(
        self, settings: Settings, identity: Identity, faults: Faults, ranks: Ranks
    ) -> None:
        self._backend = Backend(settings, identity.version, faults, ranks)
        self._keys = [hashlib.sha256(key.encode()).digest() for key in settings.keys]
        get: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/health": self._empty,
            "/ping": self._empty,
            "/metrics": self._metrics,
            "/version": self._version,
            "/v1/models": self._models,
            "/load": self._server_load,
            "/docs": self._docs,
            "/openapi.json": self._openapi,
        }
        post: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/ping": self._empty,
            "/tokenize": self._tokenize,
            "/detokenize": self._detokenize,
            "/v1/chat/completions": self._chat,
            "/v1/completions": self._completions,
            "/v1/messages": self._messages,
            "/invocations": self._invocations,
            "/v1/responses": self._not_here,
            "/generative_scoring": self._not_here,
            "/inference/v1/generate": self._not_here,
        }
        if settings.pooling:  # vLLM serves only the routes of the model's tasks
            for path in ("/v1/chat/completions", "/v1/completions", "/v1/messages"):
                del post[path]
            if not pooling.reranks(settings):
                post["/v1/embeddings"] = self._embeddings
            post |= dict.fromkeys(("/rerank", "/v1/rerank", "/v2/rerank"), self._rerank)
            post |= dict.fromkeys(("/score", "/v1/score"), self._score)
        if own := media.route(settings):
            for path in ("/v1/chat/completions", "/v1/completions", "/v1/messages"):
                del post[path]
            post[own] = self._media
        more_get, more_post = self._backend.sleep.routes()
        get |= more_get
        post |= more_post
        self._routes = {"GET": get, "HEAD": get, "POST": post}

    async def handle(self, request: Request) -> Response:
        """Answer one request, and count it."""
        begun = time.monotonic()
        response = await self._dispatch(request)
        self._count(request, response, time.monotonic() - begun)
        return response

    async def _dispatch(self, request: Request) -> Response:
        if not self._allowed(request):
            return Response(401, self.rejection, vary=False)
        route = self._routes.get(request.method, {}).get(request.path)
        if route is None:
            expected = any(request.path in routes for routes in self._routes.values())
            status, text = (405, "Method Not Allowed") if expected else (404, "Not Found")
            return Response(status, compact({"detail": text}).encode())
        try:
            return await route(request)
        except ApiError as error:
            if error.param == "input_tokens":
                return await self._too_long(error)
            return error.response()

    async def _too_long(self, error: ApiError) -> Response:
        try:
            await self._backend.faults.over_the_context()
        except ApiError as fault:
            return fault.response()
        return error.response()

    def _allowed(self, request: Request) -> bool:
        if not self._keys or request.method == "OPTIONS":
            return True
        if request.path in self.unguarded or not request.path.startswith(self.guarded):
            return True
        if self._backend.faults.open_route and request.path == "/v1/completions":
            return True
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        digest = hashlib.sha256(key.encode("latin-1", "replace")).digest()
        matches = [hmac.compare_digest(digest, key) for key in self._keys]
        return scheme.lower() == "bearer" and any(matches)

    async def _empty(self, _: Request) -> Response:
        return Response(200, b"", content_type=None)

    async def _metrics(self, _: Request) -> Response:
        kind = "text/plain; version=1.0.0; charset=utf-8"
        return Response(200, self._backend.metrics.render().encode(), content_type=kind)

    async def _version(self, _: Request) -> Response:
        return as_json({"version": self._backend.version})

    async def _server_load(self, _: Request) -> Response:
        return as_json({"server_load": self._backend.load})

    async def _docs(self, _: Request) -> Response:
        text = (
            f"<!DOCTYPE html>\n<html><head><title>vLLM {self._backend.version}: fake</title></head>"
            "<body><p>This is a fake for vLLM (sparkwright lab): no model is computed."
            '</p><p><a href="/openapi.json">openapi.json</a></p></body></html>\n'
        )
        return Response(200, text.encode(), content_type=_HTML)

    async def _openapi(self, _: Request) -> Response:
        paths: dict[str, dict[str, Any]] = {}
        for method in ("GET", "POST"):
            for path in self._routes[method]:
                responses = {"200": {"description": "Successful Response"}}
                paths.setdefault(path, {})[method.lower()] = {"responses": responses}
        title = "fake for vLLM (sparkwright lab)"
        info = {"title": title, "version": self._backend.version}
        return as_json({"openapi": "3.1.0", "info": info, "paths": paths})

    async def _models(self, _: Request) -> Response:
        now = int(time.time())
        return as_json(
            {"object": "list", "data": [self._card(name, now) for name in self._backend.names]}
        )

    def _card(self, name: str, now: int) -> dict[str, Any]:
        permission = {
            "id": f"modelperm-{new_id()}",
            "object": "model_permission",
            "created": now,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        return {
            "id": name,
            "object": "model",
            "created": now,
            "owned_by": "vllm",
            "root": self._backend.settings.model.path,
            "parent": None,
            "max_model_len": self._backend.settings.max_model_len,
            "permission": [permission],
        }

    async def _chat(self, request: Request) -> Response:
        return await chat.respond(self._backend, read_body(request))

    async def _completions(self, request: Request) -> Response:
        return await completions.respond(self._backend, read_body(request))

    async def _invocations(self, request: Request) -> Response:
        body = read_body(request)
        if "messages" in body:
            return await chat.respond(self._backend, body)
        if "prompt" in body:
            return await completions.respond(self._backend, body)
        raise bad_request("Cannot find suitable handler for request.")

    async def _messages(self, request: Request) -> Response:
        return await chat.respond_as_messages(self._backend, read_body(request))

    async def _embeddings(self, request: Request) -> Response:
        return await pooling.embeddings(self._backend, read_body(request))

    async def _rerank(self, request: Request) -> Response:
        return await pooling.rerank(self._backend, read_body(request))

    async def _score(self, request: Request) -> Response:
        return await pooling.score(self._backend, read_body(request))

    async def _media(self, request: Request) -> Response:
        if request.path.endswith("transcriptions"):
            return await media.transcription(self._backend, request)
        answered = media.speech if request.path.endswith("speech") else media.image
        return await answered(self._backend, read_body(request))

    async def _not_here(self, _: Request) -> Response:
        raise bad_request("The fake does not serve this route.")

    async def _tokenize(self, request: Request) -> Response:
        body = read_body(request)
        self._backend.model_of(body)
        if "messages" in body:
            text = "\n".join(str(item.get("content", "")) for item in body["messages"])
        else:
            text = str(body.get("prompt", ""))
        pieces = tokens_of(text)
        return as_json(
            {
                "count": len(pieces),
                "max_model_len": self._backend.settings.max_model_len,
                "tokens": [_token_id(piece) for piece in pieces],
                "token_strs": pieces if body.get("return_token_strs") else None,
            }
        )

    async def _detokenize(self, request: Request) -> Response:
        body = read_body(request)
        self._backend.model_of(body)
        numbers = body.get("tokens")
        if not isinstance(numbers, list):
            raise bad_request("tokens: a list of numbers is required", "tokens")
        # A token's number is a hash, which has no inverse.
        return as_json({"prompt": " ".join(f"<{number}>" for number in numbers)})

    def _count(self, request: Request, response: Response, seconds: float) -> None:
        expected = any(request.path in routes for routes in self._routes.values())
        if response.status == 401 or request.path in UNCOUNTED:
            # As in vLLM, HTTP metrics omit these routes, and requests that the key check refused.
            return
        handler = request.path if expected else "none"
        group = f"{response.status // 100}xx"
        size = len(response.body) if isinstance(response.body, bytes) else 0
        metrics = self._backend.metrics
        labels = {"handler": handler, "method": request.method}
        metrics.add("http_requests_total", handler=handler, method=request.method, status=group)
        metrics.observe("http_request_size_bytes", len(request.body), handler=handler)
        metrics.observe("http_response_size_bytes", size, handler=handler)
        metrics.observe("http_request_duration_highr_seconds", seconds)
        metrics.observe("http_request_duration_seconds", seconds, **labels)


def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; ApiError for any other body."""
    try:
        body = json.loads(request.body)
    except ValueError as error:
        message = (
            f"[{{'type': 'json_invalid', 'loc': ('body',), 'msg': 'JSON decode error: {error}'}}]"
        )
        raise ApiError(400, "Bad Request", message) from None
    if not isinstance(body, dict):
        raise ApiError(400, "Bad Request", "[{'type': 'dict_type', 'loc': ('body',)}]")
    return body


def _token_id(piece: str) -> int:
    return int.from_bytes(hashlib.sha256(piece.encode()).digest()[:4], "big") % 151_643


def as_json(value: Any) -> Response:
    """Return a successful response with a value as its body."""
    return Response(200, compact(value).encode(), content_type=_JSON)
