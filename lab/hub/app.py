"""The hub of the lab: a fake that speaks the Hugging Face hub's protocol to its clients.

Run the hub as `uvicorn hub.app:app` with SPARKWRIGHT_LAB_HUB_DATA set to the directory that
`repositories.py` filled. Requests for large files are redirected to signed /cdn/ links, by default
on this same server; SPARKWRIGHT_LAB_HUB_CDN sets another origin for these links (for example
another name of this server), as with the real hub. Large files are also in the hub's Xet storage
(xet.py).

The hub answers requests of sparkwright, hf_transfer, hf_xet and curl.
"""

import asyncio
import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import access, xet
from .access import Refusal
from .content import FileResponse, Source, disposition
from .hub_faults import BadFault, Counters, Faults
from .ranges import Unsatisfiable, parse_range
from .store import Commit, File, Repository, Store

DEFAULT_DATA = "/var/lib/sparkwright-lab-hub"
LINK_SECONDS = 3600
# Constant key that signs the links of this fake, so that links stay valid across a restart.
LINK_KEY = b"sparkwright lab hub fake"


class Hub:
    """The endpoints, with their shared store, faults and counters."""

    def __init__(self, data: Path, cdn: str | None = None) -> None:
        self.store = Store(data)
        self.faults = Faults()
        self.counters = Counters()
        self.cdn = cdn

    # --- names in a request -------------------------------------------------------------------

    def _repository(self, request: Request) -> Repository:
        name = access.user(request.headers.get("authorization"))
        parameters = request.path_params
        repository = self.store.load(f"{parameters['organisation']}/{parameters['name']}")
        return access.check_visible(repository, name)

    def _content_of(self, request: Request) -> Repository:
        repository = self._repository(request)
        access.check_content(repository, access.user(request.headers.get("authorization")))
        return repository

    # --- the API ------------------------------------------------------------------------------

    async def model(self, request: Request) -> Response:
        """GET /api/models/ORG/NAME[/revision/REV]: the repository at a revision."""
        repository = self._repository(request)
        commit = _commit(repository, request.path_params.get("revision", "main"))
        info = _model_info(repository, commit, blobs=_true(request.query_params.get("blobs")))
        return JSONResponse(info)

    # --- files --------------------------------------------------------------------------------

    async def resolve(self, request: Request) -> Response:
        """GET and HEAD /ORG/NAME/resolve/REV/PATH: a small file, or a redirect to a large file."""
        repository = self._content_of(request)
        commit, file = _file(repository, request.path_params)
        etag = self._etag(request, file)
        headers = {
            "x-repo-commit": commit.id,
            "accept-ranges": "bytes",
            "etag": f'"{etag}"',
        }
        if not file.lfs:
            headers["content-disposition"] = disposition(file.path)
            return self._send(repository, file, headers, "text/plain; charset=utf-8")
        headers["x-linked-size"] = str(file.size)
        headers["x-linked-etag"] = f'"{etag}"'
        headers["location"] = location = self._link(request, repository, commit, file)
        api = f"{_origin(request)}/api/models/{repository.id}/xet-read-token/{commit.id}"
        headers["x-xet-hash"] = xet.file_hash(file)
        headers["link"] = f'<{api}>; rel="xet-auth"'
        return PlainTextResponse(f"Found. Redirecting to {location}", 302, headers)

    async def content(self, request: Request) -> Response:
        """GET and HEAD /cdn/ORG/NAME/COMMIT/PATH: a large file, by a signed link."""
        self._signed(request)
        parameters = request.path_params
        repository = self.store.load(f"{parameters['organisation']}/{parameters['name']}")
        commit = repository.commit(parameters["commit"]) if repository else None
        file = commit.file(parameters["path"]) if commit else None
        if repository is None or commit is None or file is None:
            raise Refusal(404, "", "No such object")
        # Clients follow the redirect of a HEAD on the hub's own origin, and read these headers
        # here.
        headers = {
            "x-repo-commit": commit.id,
            "accept-ranges": "bytes",
            "etag": f'"{self._etag(request, file)}"',
            "content-disposition": disposition(file.path),
            "cache-control": "public, max-age=604800, immutable",
        }
        return self._send(repository, file, headers, "application/octet-stream")

    # --- Xet storage --------------------------------------------------------------------------

    async def xet_token(self, request: Request) -> Response:
        """GET /api/models/ORG/NAME/xet-read-token/REV: the storage's address and a token."""
        repository = self._content_of(request)
        _commit(repository, request.path_params["revision"])
        expires = int(time.time()) + LINK_SECONDS
        secret = xet.token(LINK_KEY, repository.id, expires)
        storage = f"{self.cdn or _origin(request)}/xet"
        headers = {
            "x-xet-cas-url": storage,
            "x-xet-access-token": secret,
            "x-xet-token-expiration": str(expires),
        }
        answer = {"casUrl": storage, "accessToken": secret, "exp": expires}
        return JSONResponse(answer, headers=headers)

    async def xet_reconstruction(self, request: Request) -> Response:
        """GET /xet/v1/reconstructions/HASH: the chunks of a file, or of a range of it."""
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        name = xet.opened(LINK_KEY, shown, time.time())
        repository = self.store.load(name) if name else None
        if repository is None:
            raise Refusal(401, "", "The token is not of this storage, or has expired")
        wanted = request.path_params["hash"]
        file = _stored(repository, lambda file: xet.file_hash(file) == wanted)
        try:
            asked = parse_range(request.headers.get("range"), file.size)
        except Unsatisfiable:
            raise Refusal(416, "", "No such range") from None
        start, end = asked or (0, file.size)
        xorbs = f"/xet/xorbs/{repository.id}/{file.sha256}"
        urls = [
            _signed_url(_origin(request), f"{xorbs}/{index}") for index in range(xet.xorbs(file))
        ]
        return JSONResponse(xet.reconstruction(file, start, end, urls))

    async def xet_xorb(self, request: Request) -> Response:
        """GET /xet/xorbs/ORG/NAME/SHA256/INDEX: the chunks of a xorb, by a signed link."""
        self._signed(request)
        parameters = request.path_params
        repository = self.store.load(f"{parameters['organisation']}/{parameters['name']}")
        if repository is None:
            raise Refusal(404, "", "No such object")
        file = _stored(repository, lambda file: file.sha256 == parameters["sha256"])
        self.counters.file_requests[repository.id, file.path] += 1
        blob, index = self.store.blob(file.sha256), parameters["index"]
        if not 0 <= index < xet.xorbs(file):
            raise Refusal(404, "", "No such object")
        return xet.XorbResponse(repository.id, blob, file, index, self.faults, self.counters)

    def _signed(self, request: Request) -> None:
        """Refuse a request without a signed link. Count requests with a token, which no client may
        send here.
        """
        if "authorization" in request.headers:
            self.counters.tokens_at_cdn += 1
        expires = request.query_params.get("Expires", "")
        signature = request.query_params.get("Signature", "")
        if not hmac.compare_digest(signature, link_signature(request.scope["path"], expires)):
            raise Refusal(403, "", "Access denied: the link is not signed by this hub")
        if int(expires) < time.time():
            raise Refusal(403, "", "Access denied: the link has expired")

    def _etag(self, request: Request, file: File) -> str:
        fault = self.faults.take("etag", request.method, request.scope["path"])
        return str(fault.value) if fault else file.etag

    def _send(
        self, repository: Repository, file: File, headers: dict[str, str], kind: str
    ) -> FileResponse:
        source = Source(
            self.store.blob(file.sha256), file.size, file.etag, repository.id, file.path
        )
        self.counters.file_requests[repository.id, file.path] += 1
        headers = {**headers, "content-type": kind}
        return FileResponse(source, self.faults, self.counters, headers)

    def _link(self, request: Request, repository: Repository, commit: Commit, file: File) -> str:
        origin = self.cdn or _origin(request)
        return _signed_url(origin, f"/cdn/{repository.id}/{commit.id}/{file.path}")

    # --- control ------------------------------------------------------------------------------

    async def control(self, request: Request) -> Response:
        """GET, POST, DELETE /control: the faults in force."""
        if request.method == "DELETE":
            self.faults.clear()
        elif request.method == "POST":
            try:
                fault = self.faults.order(json.loads(await request.body()))
            except ValueError as error:
                text = str(error) if isinstance(error, BadFault) else f"not JSON: {error}"
                return JSONResponse({"error": text}, 400)
            return JSONResponse(fault.state(), 201)
        return JSONResponse({"faults": [fault.state() for fault in self.faults]})

    async def count(self, request: Request) -> Response:
        """GET, DELETE /control/counters: numbers of requests and of sent bytes."""
        if request.method == "DELETE":
            self.counters.reset()
        return JSONResponse(self.counters.state())

    async def health(self, _request: Request) -> Response:
        """GET /health: name of this server, and its repositories."""
        return JSONResponse(
            {"fake": "sparkwright lab hub", "repositories": list(self.store.repositories())}
        )


class FaultsFirst:
    """Middleware that counts requests and applies the faults that need no file: status and
    sleep."""

    def __init__(self, app: ASGIApp, hub: Hub) -> None:
        self.app = app
        self.hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["path"].startswith(("/control", "/health")):
            await self.app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        self.hub.counters.requests[_kind(path)] += 1

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.hub.counters.statuses[str(message["status"])] += 1
                message["headers"] = [
                    *message["headers"],
                    (b"x-fake", b"sparkwright lab hub"),
                ]
            await send(message)

        sleep = self.hub.faults.take("sleep", method, path)
        if sleep is not None:
            await asyncio.sleep(sleep.value)
        status = self.hub.faults.take("status", method, path)
        if status is not None:
            text = f"Status {status.value} ordered by a test"
            await PlainTextResponse(text, status.value, status.headers)(scope, receive, counted)
            return
        await self.app(scope, receive, counted)


def create_app(data: Path, cdn: str | None = None) -> Starlette:
    """Return the hub over a data directory; repositories may be added while it runs."""
    hub = Hub(data, cdn)
    api = "/api/models/{organisation}/{name}"
    return Starlette(
        routes=[
            Route("/control", hub.control, methods=["GET", "POST", "DELETE"]),
            Route("/control/counters", hub.count, methods=["GET", "DELETE"]),
            Route("/health", hub.health),
            Route(f"{api}/revision/{{revision:path}}", hub.model),
            Route(f"{api}/xet-read-token/{{revision:path}}", hub.xet_token),
            Route("/xet/v1/reconstructions/{hash}", hub.xet_reconstruction),
            Route("/xet/xorbs/{organisation}/{name}/{sha256}/{index:int}", hub.xet_xorb),
            Route(api, hub.model),
            Route("/cdn/{organisation}/{name}/{commit}/{path:path}", hub.content),
            # Git repositories beside the hub's own, for git's dumb protocol.
            Mount("/git", StaticFiles(directory=data / "git", check_dir=False)),
            Route("/{organisation}/{name}/resolve/{revision}/{path:path}", hub.resolve),
        ],
        exception_handlers={Refusal: _refused},
        middleware=[Middleware(FaultsFirst, hub=hub)],
    )


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    headers = {"x-error-message": error.message}
    if error.code:
        headers["x-error-code"] = error.code
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": error.message}, error.status, headers)
    return PlainTextResponse(error.message, error.status, headers)


def _commit(repository: Repository, revision: str) -> Commit:
    commit = repository.commit(revision)
    if commit is None:
        raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
    return commit


def _file(repository: Repository, parameters: dict[str, str]) -> tuple[Commit, File]:
    commit = _commit(repository, parameters["revision"])
    file = commit.file(parameters["path"])
    if file is None:
        raise Refusal(404, "EntryNotFound", "Entry not found")
    return commit, file


def _model_info(repository: Repository, commit: Commit, *, blobs: bool) -> dict[str, Any]:
    siblings: list[dict[str, Any]] = []
    for file in commit.files:
        sibling: dict[str, Any] = {"rfilename": file.path}
        if blobs:
            sibling |= {"size": file.size, "blobId": file.blob_id}
            if file.lfs:
                sibling["lfs"] = {
                    "sha256": file.sha256,
                    "size": file.size,
                    "pointerSize": file.pointer_size,
                }
        siblings.append(sibling)
    blobs_kept = {file.sha256: file.size for entry in repository.commits for file in entry.files}
    return {
        "_id": _object_id(repository.id),
        "id": repository.id,
        "modelId": repository.id,
        "author": repository.id.partition("/")[0],
        "sha": commit.id,
        "createdAt": repository.commits[0].date,
        "lastModified": commit.date,
        "private": repository.private,
        "gated": "manual" if repository.gated else False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": ["safetensors", "fake"],
        "cardData": {"license": "apache-2.0"},
        "library_name": "transformers",
        "pipeline_tag": "automatic-speech-recognition"
        if "whisper" in repository.id
        else "text-generation",
        "siblings": siblings,
        "usedStorage": sum(blobs_kept.values()),
    }


def _stored(repository: Repository, wanted: Callable[[File], bool]) -> File:
    """Return the first large file of any commit with this hash, or refuse the request."""
    for commit in repository.commits:
        for file in commit.files:
            if file.lfs and wanted(file):
                return file
    raise Refusal(404, "", "No such object")


def _origin(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}"


def _signed_url(origin: str, path: str) -> str:
    expires = str(int(time.time()) + LINK_SECONDS)
    query = urlencode({"Expires": expires, "Signature": link_signature(path, expires)})
    return f"{origin}{quote(path)}?{query}"


def link_signature(path: str, expires: str) -> str:
    """Return the signature of a /cdn/ link; `expires` is in seconds since 1970."""
    return hmac.new(LINK_KEY, f"{path}\n{expires}".encode(), "sha256").hexdigest()


def _object_id(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:24]


def _kind(path: str) -> str:
    if path.startswith(("/api/", "/cdn/", "/xet/")):
        return path.split("/")[1]
    return "resolve"


def _true(text: str | None) -> bool:
    return (text or "").lower() in ("1", "true")


app = create_app(
    Path(os.environ.get("SPARKWRIGHT_LAB_HUB_DATA", DEFAULT_DATA)),
    os.environ.get("SPARKWRIGHT_LAB_HUB_CDN"),
)
