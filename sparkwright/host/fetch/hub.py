"""What is asked of the hub: the commit, the list of files, where a file's bytes are.

huggingface_hub does the asking. It is imported late: a run with nothing to fetch needs none.
The token goes to the hub's own scheme, host and port, and nowhere else.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from threading import Event
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from sparkwright.host.fetch.errors import Failed, Temporary
from sparkwright.host.fetch.progress import log
from sparkwright.host.fetch.request import File, Request, unique, validate

_T = TypeVar("_T")
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
_LONGEST_WAIT = 30.0
# A server that asks for more patience than this is better asked again by a later run.
_LONGEST_RETRY_AFTER = 300.0
_TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH")


@dataclass(frozen=True)
class Location:
    """Where a file's bytes are: an address and the headers that may be sent there."""

    url: str
    headers: dict[str, str]
    xet: Xet | None = None


@dataclass(frozen=True)
class Xet:
    """Where the same bytes are in the hub's Xet storage.

    refresh_url answers with the storage's address and a token for it; headers may be sent there.
    """

    hash: str
    refresh_url: str
    headers: dict[str, str]


def read_token(request: Request) -> str | None:
    """Return the token for the endpoint, or None. It is read from a file, never from argv."""
    if request.token_file is None:
        return None
    try:
        token = request.token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise Failed(
            f"Cannot read the token file {request.token_file}: {error.strerror}."
        ) from error
    if not token:
        return None
    if urlsplit(request.endpoint).scheme != "https" and not request.allow_token_over_http:
        log(f"the token is not sent: {request.endpoint} is not encrypted")
        return None
    return token


def transient(status: int) -> bool:
    """Tell whether an HTTP status is worth another try."""
    return status in _TRANSIENT


def retry_after(value: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for, None when it says nothing."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def pause(request: Request, attempt: int, asked: float | None, stop: Event) -> None:
    """Wait before try number attempt + 1, at least as long as the server asked for."""
    wait = min(request.backoff * 2.0**attempt, _LONGEST_WAIT)
    if asked is not None:
        wait = max(wait, min(asked, _LONGEST_RETRY_AFTER))
    if stop.wait(wait):
        raise Temporary("stopped")


def explain(
    request: Request, status: int, code: str, said: str, has_token: bool, path: str | None = None
) -> Failed:
    """Turn a refusal of the hub into one message: what, why, remedy.

    code and said are the headers X-Error-Code and X-Error-Message. Statuses as the hub uses
    them: 401 for a bad token even on public repositories; a private repository looks not found
    without a token; a gated one is 401 without a token and 403 with one that has no access.
    """
    repo, endpoint, commit = request.repo, request.endpoint, request.revision
    what = f"{repo}/{path}" if path else repo
    if code == "GatedRepo":
        if has_token:
            return Failed(
                f"{repo} is gated and the token's account has no access to it. Log in as that "
                f"account, accept the licence at {endpoint}/{repo} and run again (or set HF_TOKEN "
                "to a token of an account that has access)."
            )
        return Failed(
            f"{repo} is gated and no token was sent. Accept its licence at {endpoint}/{repo}, "
            f"make a read token at {endpoint}/settings/tokens, set HF_TOKEN to it and run again."
        )
    if code == "RevisionNotFound":
        return Failed(
            f"{repo} has no commit {commit} at {endpoint}. It was removed, or the lock names "
            "another repository's commit: lock the model again."
        )
    if code == "EntryNotFound":
        return Failed(
            f"{what} does not exist at commit {commit} of {endpoint}. The list of files is not "
            "this commit's: lock the model again."
        )
    if said == "Access to this resource is disabled.":
        return Failed(f"{endpoint} has disabled {repo}. Choose another repository.")
    if status == 401 and has_token and code != "RepoNotFound":
        return Failed(
            f"{endpoint} refuses the token (401). It is mistyped, expired or revoked: make a "
            f"read token at {endpoint}/settings/tokens, set HF_TOKEN to it and run again."
        )
    if code == "RepoNotFound" or status in {401, 404}:
        if has_token:
            return Failed(
                f"{endpoint} knows no {what}, or the token's account may not see it. Check the "
                "spelling; for a private repository set HF_TOKEN to a token that may read it."
            )
        return Failed(
            f"{endpoint} knows no {what}. Check the spelling; a private repository looks the "
            "same without a token: set HF_TOKEN to one that may read it."
        )
    if status == 403:
        return Failed(
            f"{endpoint} forbids access to {what} (403{': ' + said if said else ''}). Give the "
            "token read access to this repository, or set HF_TOKEN to one that has it."
        )
    return Failed(f"{endpoint} answered {status} for {what}{': ' + said if said else ''}.")


def certificate_problem(error: BaseException) -> bool:
    """Tell whether a failed connection is due to a certificate, which no retry mends."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return True
        reason = getattr(seen, "reason", None)
        seen = reason if isinstance(reason, BaseException) else seen.__cause__ or seen.__context__
    return False


class Hub:
    """One repository at one commit, asked through huggingface_hub with bounded retries."""

    renews = False

    def __init__(self, request: Request, token: str | None, stop: Event) -> None:
        # No token, cache or switch of whoever runs this may slip in.
        for name in _TOKEN_VARIABLES:
            os.environ.pop(name, None)
        os.environ.pop("HF_HUB_OFFLINE", None)
        os.environ["HF_HOME"] = str(request.state_dir / "hf-home")
        os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        try:
            import huggingface_hub
        except ImportError as error:
            raise Failed(
                f"The runtime has no usable huggingface_hub ({error}). Pass --runtime with the "
                "unpacked bundle for this host's architecture and Python."
            ) from error
        self._library = huggingface_hub
        self._request = request
        self._token = token
        self._stop = stop
        self._api = huggingface_hub.HfApi(endpoint=request.endpoint, token=token or False)

    def check(self) -> None:
        """See that endpoint, token, repository and commit are good before anything is moved."""
        info = self._ask(
            lambda: self._api.model_info(self._request.repo, revision=self._request.revision)
        )
        if info.sha != self._request.revision:
            raise Failed(
                f"{self._request.endpoint} answered commit {info.sha} when asked for "
                f"{self._request.revision} of {self._request.repo}: it is no faithful hub."
            )

    def files(self) -> tuple[File, ...]:
        """Return the files of the commit with their sizes and hashes."""
        entries: list[Any] = self._ask(
            lambda: list(
                self._api.list_repo_tree(
                    self._request.repo, recursive=True, revision=self._request.revision
                )
            )
        )
        files = [
            File(entry.path, entry.size, entry.lfs.sha256 if entry.lfs else None,
                 None if entry.lfs else entry.blob_id)
            for entry in entries
            if hasattr(entry, "blob_id")
        ]  # fmt: skip
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

    def locate(self, file: File) -> Location:
        """Return where a large file's bytes are, after any redirect to a CDN."""
        url = self.direct(file.path).url
        found = self._ask(
            lambda: self._library.get_hf_file_metadata(
                url, token=self._token or False, endpoint=self._request.endpoint, timeout=30
            ),
            file.path,
        )
        commit = found.commit_hash
        if commit and commit != self._request.revision:
            raise Failed(
                f"{self._request.endpoint} serves {file.path} of commit {commit} when asked for "
                f"{self._request.revision}: it is no faithful hub."
            )
        if found.size is not None and found.size != file.size:
            raise Failed(
                f"{file.path} has {found.size} bytes on the hub, but {file.size} in the lock. "
                "Nothing was fetched; lock the model again if the new file is the wanted one."
            )
        location = urljoin(url, found.location)
        return Location(location, self._headers(location), self._xet(url, found.xet_file_data))

    def _xet(self, url: str, known: Any) -> Xet | None:
        """Return where a file is in Xet storage: None where it is not, or shall not be asked."""
        if self._request.mover != "xet" or known is None:
            return None
        refresh_url = urljoin(url, known.refresh_route)
        return Xet(known.file_hash, refresh_url, self._headers(refresh_url))

    def refusal(self, status: int, headers: Any, path: str) -> Failed:
        """Explain a refusal that came on a plain request to the hub."""
        return explain(
            self._request,
            status,
            headers.get("X-Error-Code") or "",
            headers.get("X-Error-Message") or "",
            self._token is not None,
            path,
        )

    def _headers(self, url: str) -> dict[str, str]:
        """Return what may be sent to an address: the token to the hub alone."""
        if self._token is not None and origin(url) == origin(self._request.endpoint):
            return {"Authorization": f"Bearer {self._token}"}
        return {}

    def _ask(self, question: Callable[[], _T], path: str | None = None) -> _T:
        """Ask with bounded retries; say in one message why it finally failed."""
        attempt = 0
        while True:
            try:
                return question()
            except Exception as error:
                response = getattr(error, "response", None)
                status = getattr(response, "status_code", None)
                asked = None
                if status is not None and response is not None:
                    if not transient(status):
                        raise explain(
                            self._request,
                            status,
                            response.headers.get("X-Error-Code") or "",
                            response.headers.get("X-Error-Message") or "",
                            self._token is not None,
                            path,
                        ) from error
                    asked = retry_after(response.headers.get("Retry-After"))
                    why = f"{self._request.endpoint} answers {status}"
                elif certificate_problem(error):
                    raise Failed(
                        f"{self._request.endpoint} shows a certificate that this host does not "
                        f"trust ({error}). Install the authority's certificate on the host."
                    ) from error
                elif type(error).__module__.startswith(("httpx", "httpcore")) or isinstance(
                    error, OSError
                ):
                    why = f"{self._request.endpoint} is out of reach ({error})"
                else:
                    raise Failed(
                        f"{self._request.endpoint} gave an answer that makes no sense "
                        f"({type(error).__name__}: {error}). Is it a Hugging Face hub?"
                    ) from error
                if attempt >= self._request.retries:
                    raise Temporary(
                        f"{why}, after {attempt + 1} tries. Check the host's line and the hub, "
                        "then run again: what was fetched is kept."
                    ) from error
                log(f"{why}; trying again")
            pause(self._request, attempt, asked, self._stop)
            attempt += 1


def origin(url: str) -> tuple[str, str, int]:
    """Return (scheme, host, port) of an address."""
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return parts.scheme, (parts.hostname or "").lower(), port
