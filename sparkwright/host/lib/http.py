"""Asking servers of this host over HTTP: vLLM, and the proxy before it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sparkwright.host.lib.documents import pairs
from sparkwright.host.lib.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    import http.client
    import ssl
    from typing import Any


@dataclass(frozen=True)
class Health:
    """Result of /health: a status code and its seconds, or the text of an error."""

    code: int | None
    seconds: float = 0.0
    message: str = ""


#: Bytes of an answer, and of a stream, at most: vLLM's largest, of tokens or metrics, have some.
_LARGEST, _LONGEST = 16 << 20, 256 << 20
#: Bytes of a stream's line at most.
_LINE = 1 << 20


class NoAnswer(Exception):
    """The server refuses, hangs up, says too much, or does not speak HTTP; the text is the error's
    own."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error) or type(error).__name__)
        #: The error's name, for messages that show it.
        self.kind = type(error).__name__


class Late(NoAnswer):
    """There was no answer in time."""


@dataclass(frozen=True)
class Form:
    """A request's body that is not JSON."""

    content_type: str
    data: bytes


@dataclass(frozen=True)
class Answer:
    """An answer."""

    status: int
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError when it is none."""
        return json.loads(self.body)


def api_key(secrets: str) -> str:
    """The API key of a service's secrets file.

    Raises:
        OSError, KeyError: when there is none.
    """
    for value in pairs(Path(secrets).read_text()).values():
        return value
    raise KeyError(secrets)


@dataclass(frozen=True)
class Server:
    """A server on this host, with its key where there is one.

    Attributes:
        address: of IP, or the path of a Unix socket, which has port 0.
        certificate: file with the certificate that it serves https with, and no other one is taken;
            None, or a file that is not there, for http.
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
        """Send a request and return its answer, whatever the status.

        Args:
            body: sent as JSON, but for a Form; None sends none.
            timeout: seconds that it may take.
            key: whether the key is shown.

        Raises:
            NoAnswer: Late, when it takes too long.
        """
        with self._answer(method, path, body, timeout, _LARGEST, key) as answer:
            return Answer(answer.status, answer.read())

    def get(self, path: str, *, timeout: float = 5) -> Answer:
        """Send a GET request; see ask."""
        return self.ask("GET", path, timeout=timeout)

    def events(self, path: str, body: object, *, timeout: float) -> Iterator[tuple[float, str]]:
        """The data of a stream's events, each with the seconds since the request was sent.

        Raises:
            NoAnswer: Late, when the stream has not ended after ``timeout`` seconds.
            ErrorAnswer: when the answer is not a stream.
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
        """A bounded answer; the errors of its connection are NoAnswer."""
        # Here, since the controller imports this module for records alone.
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
        """A connection, made at once or by its first request.

        Raises:
            NoAnswer: when it can't be.
        """
        import http.client  # 30 ms

        if self.address.startswith("/"):
            return self._at_socket(timeout)
        if not self.certificate or not Path(self.certificate).exists():
            return http.client.HTTPConnection(self.address, self.port, timeout=timeout)
        try:
            context = _only(Path(self.certificate).read_text())
        except OSError as error:
            raise _no_answer(error) from error
        return http.client.HTTPSConnection(
            self.address, self.port, timeout=timeout, context=context
        )

    def _at_socket(self, timeout: float) -> http.client.HTTPConnection:
        import http.client
        import socket

        connection = http.client.HTTPConnection("localhost", timeout=timeout)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(timeout)
        try:
            connection.sock.connect(self.address)
        except OSError as error:
            connection.close()
            raise _no_answer(error) from error
        return connection


class ErrorAnswer(Exception):
    """The server answers with an error where a stream was requested."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP {answer.status}")
        self.answer = answer


def _only(pem: str) -> ssl.SSLContext:
    """Takes the first certificate of a file while it is valid, and no other: whoever has its key is
    the server, under any name.

    Raises:
        OSError: when there is no certificate in it.
    """
    import ssl  # 8 ms, for those alone who need it

    first, end, _ = pem.partition("-----END CERTIFICATE-----")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    # It is trusted by itself, whoever issued it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=f"{first}{end}\n")
    return context


def _no_answer(error: Exception) -> NoAnswer:
    return Late(error) if isinstance(error, TimeoutError) else NoAnswer(error)
