"""HTTP requests to servers of this host: engines, and the proxy in front of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sparkwright.host.lib.annotations import TYPE_CHECKING, Any
from sparkwright.host.lib.documents import pairs
from sparkwright.host.lib.records import dataclass

if TYPE_CHECKING:
    import http.client
    import ssl


@dataclass(frozen=True)
class Health:
    """Result of /health: a status code and the seconds until the answer, or an error's text."""

    code: int | None
    seconds: float = 0.0
    message: str = ""


#: Largest number of bytes of an answer and of a stream: vLLM's largest answers, with tokens or
#: metrics, have some MiB.
_LARGEST, _LONGEST = 16 << 20, 256 << 20
#: Largest number of bytes of a stream's line.
_LINE = 1 << 20


class NoAnswer(Exception):
    """The server refused or closed the connection, sent too much, or does not speak HTTP; the text
    is the error message.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error) or type(error).__name__)
        #: The error's name, for messages that show it.
        self.kind = type(error).__name__


class Late(NoAnswer):
    """No answer arrived in time."""


@dataclass(frozen=True)
class Form:
    """Body of a request in a format other than JSON."""

    content_type: str
    data: bytes


@dataclass(frozen=True)
class Answer:
    """Answer of a server."""

    status: int
    body: bytes

    @property
    def text(self) -> str:
        """Return the body as text."""
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """Return the body as JSON. Raises ValueError if the body is not JSON."""
        return json.loads(self.body)


def api_key(secrets: str) -> str:
    """Return the API key in the text of a service's secrets file.

    Raises:
        OSError, KeyError: the text has no key.
    """
    for value in pairs(Path(secrets).read_text()).values():
        return value
    raise KeyError(secrets)


@dataclass(frozen=True)
class Server:
    """A server on this host, with its API key if it requires one.

    Attributes:
        address: IP address, or the path of a Unix socket with port 0.
        certificate: file with the only accepted https certificate; None or a missing file for http.
    """

    address: str
    port: int
    key: str | None = None
    certificate: str | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        timeout: float = 30,
        key: bool = True,
    ) -> Answer:
        """Send a request and return its answer, for any status.

        Args:
            body: data to send as JSON, or a Form; None for no body.
            timeout: seconds until the whole answer must have arrived.
            key: whether to send the API key.

        Raises:
            NoAnswer: the connection failed; Late if the answer takes too long.
        """
        with self._answer(method, path, body, timeout, _LARGEST, key) as answer:
            return Answer(answer.status, answer.read())

    def get(self, path: str, *, timeout: float = 5) -> Answer:
        """Send a GET request; see ``ask``."""
        return self.ask("GET", path, timeout=timeout)

    def events(self, path: str, body: object, *, timeout: float) -> Iterator[tuple[float, str]]:
        """Yield the data of a stream's events, each with the seconds since the request was sent.

        Raises:
            NoAnswer: the connection failed; Late if the stream has not ended after ``timeout``
            seconds.
            ErrorAnswer: the answer is not a stream.
        """
        from sparkwright.host.lib import bounded

        begun = time.monotonic()
        with self._answer("POST", path, body, timeout, _LONGEST, True) as answer:
            if answer.status != 200:
                raise ErrorAnswer(Answer(answer.status, answer.read()))
            for line in iter(partial(answer.readline, _LINE + 1), b""):
                if len(line) > _LINE:
                    raise bounded.TooMuch(_LINE)
                if line.startswith(b"data: "):
                    yield time.monotonic() - begun, line[6:].decode().strip()

    @contextmanager
    def _answer(
        self, method: str, path: str, body: object, timeout: float, most: int, key: bool
    ) -> Iterator[http.client.HTTPResponse]:
        """Open a bounded answer; connection errors become NoAnswer."""
        # The controller needs only this module's records, not these imports.
        from http.client import HTTPException

        from sparkwright.host.lib import bounded

        connection = self.connected(timeout)
        connection.response_class = bounded.answers(most, timeout)  # type: ignore[assignment]
        headers = {"Content-Type": "application/json"}
        if key and self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            if isinstance(body, Form):
                headers["Content-Type"], sent = body.content_type, body.data
            else:
                sent = b"" if body is None else json.dumps(body).encode()
            connection.request(method, path, sent or None, headers)
            yield connection.getresponse()
        except (OSError, HTTPException) as error:
            raise _no_answer(error) from error
        finally:
            connection.close()

    def connected(self, timeout: float) -> http.client.HTTPConnection:
        """Return a connection, which opens at once or with its first request.

        Raises:
            NoAnswer: the server can't be reached.
        """
        import http.client  # takes 30 ms
        import socket

        if self.address.startswith("/"):
            connection = http.client.HTTPConnection("localhost", timeout=timeout)
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(timeout)
            try:
                connection.sock.connect(self.address)
            except OSError as error:
                connection.close()
                raise _no_answer(error) from error
            return connection
        if not self.certificate or not Path(self.certificate).exists():
            return http.client.HTTPConnection(self.address, self.port, timeout=timeout)
        try:
            context = _only(Path(self.certificate).read_text())
        except OSError as error:
            raise _no_answer(error) from error
        return http.client.HTTPSConnection(
            self.address, self.port, timeout=timeout, context=context
        )


class ErrorAnswer(Exception):
    """The server answered a request for a stream with an error."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP {answer.status}")
        self.answer = answer


def _only(pem: str) -> ssl.SSLContext:
    """Return a TLS context that trusts only the first certificate of a PEM text, under any name.

    The certificate must still be valid.

    Raises:
        OSError: the text holds no certificate.
    """
    import ssl  # ssl takes 8 ms to import: only for https clients

    first, end, _ = pem.partition("-----END CERTIFICATE-----")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    # The certificate itself is trusted, from any issuer.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=f"{first}{end}\n")
    return context


def _no_answer(error: Exception) -> NoAnswer:
    return Late(error) if isinstance(error, TimeoutError) else NoAnswer(error)
