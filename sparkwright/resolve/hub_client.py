"""The hub's own client (huggingface_hub) for one query, within bounds.

Whoever owns a repository writes its data, and a mirror may return anything: bytes, time and shape
of an answer are bounded before the client reads it.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sparkwright.documents import json_text
from sparkwright.documents.bounds import Unusable
from sparkwright.resolve.queries import body

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

#: Bytes and values of a large repository's data with every file.
MOST_BYTES, MOST_VALUES = 32 << 20, 5_000_000
#: Variables by which requests finds the certificates of a site's own authority.
_AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
#: Queries that run now, and the lock of this set.
_queries: set[object] = set()
_queries_lock = threading.Lock()


def model_info(endpoint: str, repository: str, revision: str, token: str | None) -> ModelInfo:
    """Ask a hub for a revision of a model and its files.

    The client sends the token to the endpoint's own host only.

    Raises:
        huggingface_hub.errors.HfHubHTTPError: for an answer that is an error; it has the response.
        requests.ConnectionError: when the hub is out of reach.
        ValueError: for an answer that is no model's data.
    """
    import httpx2  # a locked run sends no request, and these take 0.15 s to import
    import requests
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        with _bounded_client(httpx2):
            return HfApi(endpoint=endpoint, token=token or False).model_info(
                repository, revision=revision, files_metadata=True
            )
    except HfHubHTTPError:
        raise
    except (httpx2.HTTPError, ConnectionError) as error:
        raise requests.ConnectionError(str(error)) from error
    except (AttributeError, Unusable) as error:
        raise ValueError(f"not a model's data: {error}") from error


@contextmanager
def _bounded_client(library: Any) -> Iterator[None]:
    """Give huggingface_hub a bounded client while queries run.

    The client belongs to the whole process, and setting another one closes it: queries that run
    side by side share it, and the last query restores the default.
    """
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    query = object()
    with _queries_lock:
        if not _queries:
            set_client_factory(lambda: _client(library))
        _queries.add(query)
    try:
        yield
    finally:
        with _queries_lock:
            _queries.remove(query)
            if not _queries:
                set_client_factory(default_client_factory)


def _client(library: Any) -> Any:
    """The client of all queries. It refuses compressed answers: nobody knows how long they get."""

    def bound(response: Any) -> None:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise ValueError("it is compressed, though that was not asked for")
        content = body(response.stream, MOST_BYTES)
        response.stream.close()
        response.stream = library.ByteStream(content)
        if response.status_code == 200:
            # Before the client's own reader, which has no bound on depth.
            json_text.load_object(content, MOST_VALUES)

    authority = next(filter(None, map(os.environ.get, _AUTHORITIES)), None)
    return library.Client(
        headers={"Accept-Encoding": "identity"},
        follow_redirects=True,
        timeout=library.Timeout(30, connect=5),
        verify=ssl.create_default_context(cafile=authority) if authority else True,
        event_hooks={"response": [bound]},
    )
