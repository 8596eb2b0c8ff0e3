"""Queries to the hub: the commit, the list of files, the address of a file.

They go through huggingface_hub, which is imported late: a run with nothing to fetch needs none.
The token is sent to the hub's own scheme, host and port only.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from sparkwright.host.fetch.errors import Failed, Temporary
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import FetchFile, FetchRequest, unique, validate
from sparkwright.host.fetch.web import certificate_problem, origin, pause, retry_after, transient
from sparkwright.host.lib import bounded
from sparkwright.host.lib.pickles import is_pickle

_T = TypeVar("_T")
#: Bytes of an answer, files of a repository, and seconds of a query, at most.
_LARGEST, _MOST_FILES, _LONGEST = 32 * bounded.MIB, 100_000, 300.0
_TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH")


@dataclass(frozen=True)
class Location:
    """Address of a file, and the headers that may be sent there."""

    url: str
    headers: dict[str, str]
    xet: Xet | None = None


@dataclass(frozen=True)
class Xet:
    """The same file in the hub's Xet storage.

    refresh_url returns the address of the storage and a token for it; headers may be sent there.
    """

    hash: str
    refresh_url: str
    headers: dict[str, str]


def read_token(request: FetchRequest) -> str | None:
    """Return the token for the endpoint, or None. It comes from a file, never from argv."""
    if request.token_file is None:
        return None
    try:
        token = Path(request.token_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise Failed(
            f"Cannot read the token file {request.token_file}: {error.strerror}."
        ) from error
    if not token:
        return None
    if urlsplit(request.endpoint).scheme != "https" and not request.allow_token_over_http:
        log(f"the token is not sent: {request.endpoint} is not https")
        return None
    return token


def explain(
    request: FetchRequest,
    status: int,
    headers: Any,
    has_token: bool,
    path: str | None = None,
) -> Failed:
    """Turn an HTTP error of the hub into one message: what, why, remedy.

    The hub answers 401 to a bad token, also for public repositories. A private repository looks
    like a missing one without a token. A gated one answers 401 without a token, and 403 with the
    token of an account that has no access.
    """
    code, message = headers.get("X-Error-Code") or "", headers.get("X-Error-Message") or ""
    repo, endpoint, commit = request.repo, request.endpoint, request.revision
    what = f"{repo}/{path}" if path else repo
    if code == "GatedRepo":
        if has_token:
            return Failed(
                f"{repo} is gated and the token's account has no access to it. Log in with that "
                f"account, accept the licence at {endpoint}/{repo} and run again, or set HF_TOKEN "
                "to a token of an account that has access."
            )
        return Failed(
            f"{repo} is gated and no token was sent. Accept its licence at {endpoint}/{repo}, "
            f"create a read token at {endpoint}/settings/tokens, set HF_TOKEN to it and run again."
        )
    if code == "RevisionNotFound":
        return Failed(
            f"{repo} has no commit {commit} at {endpoint}. It was removed, or the lock has the "
            "commit of another repository: lock the model again."
        )
    if code == "EntryNotFound":
        return Failed(
            f"{what} does not exist at commit {commit} of {endpoint}. The list of files is from "
            "another commit: lock the model again."
        )
    if message == "Access to this resource is disabled.":
        return Failed(f"{endpoint} has disabled {repo}. Choose another repository.")
    if status == 401 and has_token and code != "RepoNotFound":
        return Failed(
            f"{endpoint} rejects the token (HTTP 401). It is mistyped, expired or revoked: create "
            f"a read token at {endpoint}/settings/tokens, set HF_TOKEN to it and run again."
        )
    if code == "RepoNotFound" or status in {401, 404}:
        if has_token:
            return Failed(
                f"{endpoint} has no {what}, or the token's account has no access to it. Check the "
                "spelling; for a private repository set HF_TOKEN to a token that can read it."
            )
        return Failed(
            f"{endpoint} has no {what}. Check the spelling; without a token a private repository "
            "looks like a missing one: set HF_TOKEN to a token that can read it."
        )
    details = f": {message}" if message else ""
    if status == 403:
        return Failed(
            f"{endpoint} denies access to {what} (HTTP 403{details}). Give the token read access "
            "to this repository, or set HF_TOKEN to a token that has it."
        )
    return Failed(f"{endpoint} answers HTTP {status} for {what}{details}.")


def _in_time(query: Callable[[], _T]) -> _T:
    """A query's result. The library bounds each step, and a hostile hub makes steps for ever."""
    found: Future[_T] = Future()

    def ask() -> None:
        try:
            found.set_result(query())
        except BaseException as error:
            found.set_exception(error)

    Thread(target=ask, daemon=True).start()
    try:
        return found.result(_LONGEST)
    except FutureTimeout:
        if found.done():
            raise
        raise TimeoutError(f"no answer within {_LONGEST:g} s") from None


def _client(library: Any) -> Any:
    """The client of all queries; an answer that is compressed could not be bounded."""

    class Counted(library.SyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __iter__(self) -> Iterator[bytes]:
            left = _LARGEST
            for chunk in self._stream:
                left -= len(chunk)
                if left < 0:
                    raise bounded.TooMuch(_LARGEST)
                yield chunk

        def close(self) -> None:
            self._stream.close()

    def bound(response: Any) -> None:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise ValueError("it is compressed, though that was not asked for")
        response.stream = Counted(response.stream)

    return library.Client(
        headers={"Accept-Encoding": "identity"},
        follow_redirects=True,
        event_hooks={"response": [bound]},
    )


class Hub:
    """One repository at one commit, queried through huggingface_hub with bounded retries."""

    renews = False

    def __init__(self, request: FetchRequest, token: str | None, stop: Event) -> None:
        # The caller's environment must not add a token, a cache or a switch.
        for name in _TOKEN_VARIABLES:
            os.environ.pop(name, None)
        os.environ.pop("HF_HUB_OFFLINE", None)
        os.environ["HF_HOME"] = f"{request.state_dir}/hf-home"
        os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        try:
            import httpx2
            import huggingface_hub
        except ImportError as error:
            raise Failed(
                f"The runtime has no usable huggingface_hub ({error}). Pass --runtime with the "
                "unpacked bundle for this host's architecture and Python."
            ) from error
        huggingface_hub.set_client_factory(lambda: _client(httpx2))
        self._library = huggingface_hub
        self._request = request
        self._token = token
        self._stop = stop
        self._api = huggingface_hub.HfApi(endpoint=request.endpoint, token=token or False)

    def check(self) -> None:
        """Check endpoint, token, repository and commit before anything is downloaded."""
        info = self._query(
            lambda: self._api.model_info(self._request.repo, revision=self._request.revision)
        )
        if info.sha != self._request.revision:
            raise Failed(
                f"{self._request.endpoint} returns commit {info.sha} for "
                f"{self._request.revision} of {self._request.repo}: it is not a valid hub."
            )

    def files(self) -> tuple[FetchFile, ...]:
        """Return the files of the commit with their sizes and hashes, without pickles."""
        entries: list[Any] = self._query(
            lambda: list(
                itertools.islice(
                    self._api.list_repo_tree(
                        self._request.repo, recursive=True, revision=self._request.revision
                    ),
                    _MOST_FILES + 1,
                )
            )
        )
        if len(entries) > _MOST_FILES:
            raise Failed(f"{self._request.repo} has more than {_MOST_FILES} files: refused.")
        files = [
            FetchFile(
                entry.path,
                entry.size,
                entry.lfs.sha256 if entry.lfs else None,
                None if entry.lfs else entry.blob_id,
            )
            for entry in entries
            if hasattr(entry, "blob_id") and not is_pickle(entry.path)
        ]
        for file in files:
            validate(file)
        unique(files)
        if not files:
            raise Failed(f"{self._request.repo} has no files at {self._request.revision}.")
        return tuple(files)

    def direct(self, path: str) -> Location:
        """Return the hub's own address of a file; it may redirect."""
        url = self._library.hf_hub_url(
            self._request.repo,
            path,
            revision=self._request.revision,
            endpoint=self._request.endpoint,
        )
        return Location(url, self._headers(url))

    def locate(self, file: FetchFile) -> Location:
        """Return the address of a large file, after any redirect to a CDN."""
        url = self.direct(file.path).url
        found = self._query(
            lambda: self._library.get_hf_file_metadata(
                url, token=self._token or False, endpoint=self._request.endpoint, timeout=30
            ),
            file.path,
        )
        commit = found.commit_hash
        if commit and commit != self._request.revision:
            raise Failed(
                f"{self._request.endpoint} serves {file.path} of commit {commit} instead of "
                f"{self._request.revision}: it is not a valid hub."
            )
        if found.size is not None and found.size != file.size:
            raise Failed(
                f"{file.path} has {found.size} bytes on the hub, but {file.size} in the lock. "
                "Nothing was fetched; lock the model again if you want the new file."
            )
        location = urljoin(url, found.location)
        return Location(location, self._headers(location), self._xet(url, found.xet_file_data))

    def _xet(self, url: str, known: Any) -> Xet | None:
        """Return a file in Xet storage; None if it is not there, or Xet is not requested."""
        if self._request.downloader != "xet" or known is None:
            return None
        refresh_url = urljoin(url, known.refresh_route)
        return Xet(known.file_hash, refresh_url, self._headers(refresh_url))

    def refusal(self, status: int, headers: Any, path: str | None) -> Failed:
        """Explain an HTTP error of the hub."""
        return explain(self._request, status, headers, self._token is not None, path)

    def _headers(self, url: str) -> dict[str, str]:
        """Return what may be sent to an address: the token to the hub only."""
        if self._token is not None and origin(url) == origin(self._request.endpoint):
            return {"Authorization": f"Bearer {self._token}"}
        return {}

    def _query(self, query: Callable[[], _T], path: str | None = None) -> _T:
        """Run a query with bounded retries; raises Failed with one message in the end."""
        endpoint = self._request.endpoint
        attempt = 0
        while True:
            try:
                return _in_time(query)
            except Exception as error:
                response = getattr(error, "response", None)
                status = getattr(response, "status_code", None)
                required = None
                if status is not None and response is not None:
                    if not transient(status):
                        raise self.refusal(status, response.headers, path) from error
                    required = retry_after(response.headers.get("Retry-After"))
                    reason = f"{endpoint} answers HTTP {status}"
                elif isinstance(error, bounded.TooMuch):
                    raise Failed(
                        f"{endpoint} returned an unexpected answer ({error}). Is it a Hugging Face "
                        "hub?"
                    ) from error
                elif certificate_problem(error):
                    raise Failed(
                        f"{endpoint} presents a certificate that this host does not trust "
                        f"({error}). Install the certificate of its authority on the host."
                    ) from error
                elif type(error).__module__.startswith(("httpx", "httpcore")) or isinstance(
                    error, OSError
                ):
                    reason = f"{endpoint} is unreachable ({error})"
                else:
                    raise Failed(
                        f"{endpoint} returned an unexpected answer "
                        f"({type(error).__name__}: {error}). Is it a Hugging Face hub?"
                    ) from error
                if attempt >= self._request.retries:
                    raise Temporary(
                        f"{reason}, after {attempt + 1} tries. Check the host's connection and "
                        "the hub, then run again: what was fetched is kept."
                    ) from error
                log(f"{reason}; trying again")
            pause(self._request, attempt, required, self._stop)
            attempt += 1
