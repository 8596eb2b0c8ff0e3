"""Asking a Hugging Face hub what a revision is: its commit and every file's size and hash."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sparkwright.catalog.entries import KvLayers
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake
from sparkwright.resolve.kv_cache import kv_layers

if TYPE_CHECKING:
    import requests

_TIMEOUT = (5, 30)


@dataclass(frozen=True)
class RemoteFile:
    """One file of a model repository.

    Attributes:
        path: within the repository.
        size: in bytes.
        sha256: of the content, for files kept in large file storage; else None.
        blob_id: git's own SHA-1 of a small file's blob.
    """

    path: str
    size: int
    sha256: str | None
    blob_id: str | None


@dataclass(frozen=True)
class ResolvedModel:
    """What a revision was found to be.

    Attributes:
        commit: 40 hex digits.
        last_modified: day of that commit, where the hub says.
        kv: layers that keep keys and values, by the commit's own config.json.
    """

    repository: str
    commit: str
    last_modified: dt.date | None
    files: tuple[RemoteFile, ...]
    kv: tuple[KvLayers, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)

    @property
    def directory(self) -> str:
        """The model's place below the models root: ``org--name/<commit>``."""
        return f"{self.repository.replace('/', '--')}/{self.commit}"

    @property
    def python_files(self) -> tuple[str, ...]:
        """Paths of its files that Python could import."""
        return tuple(file.path for file in self.files if file.path.endswith(".py"))

    def manifest(self) -> list[dict[str, Any]]:
        """The files as plain data, for the request that a host's fetch reads."""
        return [asdict(file) for file in self.files]


class HubError(Exception):
    """The hub could not be asked, or refuses; carries the problem."""

    def __init__(self, problem: Finding) -> None:
        self.problem = problem
        super().__init__(str(problem))


def resolve_model(
    endpoint: str, repository: str, revision: str, token: str | None
) -> ResolvedModel:
    """Resolve a revision to a commit and its files.

    The token is sent to the endpoint's own host only (requests drops it on a redirect elsewhere).

    Raises:
        HubError: with what to do for 401, 403, 404 and for a hub out of reach.
    """
    import requests  # a locked run sends no request, and this takes 50 ms to import

    where = f"model {repository}@{revision}"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"{endpoint}/api/models/{repository}/revision/{revision}"
    try:
        answer = requests.get(url, params={"blobs": "true"}, headers=headers, timeout=_TIMEOUT)
    except requests.RequestException as error:
        raise HubError(
            mistake(
                where,
                f"the hub {endpoint} could not be asked: {_reason(error)}",
                "check the network of this machine, or set hub_endpoint",
            )
        ) from error
    if answer.status_code != 200:
        raise HubError(_refused(where, endpoint, repository, answer, token is not None))
    try:
        found = _parse(repository, answer.json())
        return replace(found, kv=kv_layers(_config(endpoint, found, headers)))
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise HubError(
            mistake(
                where,
                f"the hub {endpoint} answers something else than a model's data",
                "check hub_endpoint",
            )
        ) from error


def _config(endpoint: str, model: ResolvedModel, headers: dict[str, str]) -> Any:
    """The commit's config.json; None where it can't be had, since nothing depends on it."""
    import requests  # a locked run sends no request, and this takes 50 ms to import

    if not any(file.path == "config.json" for file in model.files):
        return None
    url = f"{endpoint}/{model.repository}/resolve/{model.commit}/config.json"
    try:
        answer = requests.get(url, headers=headers, timeout=_TIMEOUT)
        return answer.json() if answer.ok else None
    except (requests.RequestException, ValueError):
        return None


def _parse(repository: str, data: dict[str, Any]) -> ResolvedModel:
    files = []
    for sibling in data["siblings"]:
        lfs = sibling.get("lfs") or {}
        files.append(
            RemoteFile(
                path=str(sibling["rfilename"]),
                size=int(lfs.get("size", sibling.get("size", 0))),
                sha256=lfs.get("sha256"),
                blob_id=sibling.get("blobId"),
            )
        )
    modified = data.get("lastModified")
    return ResolvedModel(
        repository=repository,
        commit=str(data["sha"]),
        last_modified=dt.date.fromisoformat(modified[:10]) if modified else None,
        files=tuple(sorted(files, key=lambda file: file.path)),
    )


def _refused(
    where: str, endpoint: str, repository: str, answer: requests.Response, with_token: bool
) -> Finding:
    code = answer.headers.get("X-Error-Code", "")
    page = f"{endpoint}/{repository}"
    if code == "GatedRepo" or answer.status_code == 403:
        remedy = (
            f"accept the licence at {page} with your account, then set HF_TOKEN to a token of it"
        )
        return mistake(where, "the model is gated", remedy)
    if answer.status_code == 401 and with_token and code != "RepoNotFound":
        return mistake(
            where,
            "the hub refuses the token",
            "make a new token and set HF_TOKEN (or hub_token_file)",
        )
    if code == "RevisionNotFound":
        return mistake(
            where, "the repository has no such revision", f"look for it at {page}/commits"
        )
    if answer.status_code in (401, 404):
        return mistake(
            where,
            "the hub knows no such repository, or it is private",
            f"check the name at {page}; for a private one set HF_TOKEN",
        )
    return mistake(
        where,
        f"the hub answers HTTP {answer.status_code}",
        "try again later, or set hub_endpoint to a mirror",
    )


def _reason(error: requests.RequestException) -> str:
    text = str(error)
    for known in (
        "Connection refused",
        "No route to host",
        "Name or service not known",
        "timed out",
    ):
        if known in text:
            return known
    return text[:200]
