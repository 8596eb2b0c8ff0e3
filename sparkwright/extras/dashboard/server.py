"""The live page's server: access control and addresses.

Any page of a browser can send requests here, so each request must name this server as its host,
come from this page or no page, and have the cookie. This module is loaded after
``sparkwright.run``, which patches the standard library.
"""

import hmac
import json
import secrets
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sparkwright.extras.dashboard.view import Fleet
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib.connections import Bounded, Connections
from sparkwright.host.models.refusal import Refused

#: Largest number of open connections, and seconds for a request or an answer's next bytes.
_CONNECTIONS, _PATIENCE = 128, 20.0
#: Seconds between two heartbeats of a stream.
_BEAT = 10.0
#: Largest number of bytes of a request for an action.
_BODY = 4096
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TEXT = "text/plain; charset=utf-8"
_PRINTED = "open the address that `sparkwright dashboard` printed"


@dataclass(frozen=True)
class Site:
    """Contents of the server, and the secrets for access to the page.

    Attributes:
        host: the only name by which browsers may call this server.
        files: path -> content type and a function that makes the content.
        record: function that returns the time when the page's stored part changed; open pages then
            load the part again.
        log: function that returns the last lines of a service's log.
        control: function that runs an action on a host or a service; None for a page that only
            reads.
        token: part of the printed address, exchanged for the cookie.
    """

    fleet: Fleet
    host: str
    port: int
    files: dict[str, tuple[str, Callable[[], str]]]
    record: Callable[[], float]
    log: Callable[[str, str], str]
    control: Callable[[str, str, str], tuple[bool, str]] | None = None
    tls: ssl.SSLContext | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def name(self) -> str:
        """Expected ``Host`` of a browser's requests, without a default port."""
        usual = self.port == (443 if self.tls else 80)
        return self.host if usual else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Address of the page, without the token."""
        return f"{'https' if self.tls else 'http'}://{self.name}"

    @property
    def cookie(self) -> str:
        """Name of the cookie, with the port, since browsers share cookies between the ports of a
        host.
        """
        return f"{'__Host-' if self.tls else ''}sparkwright-{self.port}"


class Server(Bounded):
    """Serve a site on a listening socket."""

    def __init__(self, listening: socket.socket, site: Site) -> None:
        if site.tls:
            listening = site.tls.wrap_socket(
                listening, server_side=True, do_handshake_on_connect=False
            )
        self.connections = Connections(_CONNECTIONS, _CONNECTIONS)
        super().__init__(listening, Handler, self.connections)
        self.site = site


class Handler(BaseHTTPRequestHandler):
    """Handle the requests of one connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "sparkwright", ""
    timeout = _PATIENCE
    server: Server

    def setup(self) -> None:
        """Begin TLS here: in the accepting thread, a slow client would block other clients."""
        if isinstance(self.request, ssl.SSLSocket):
            self.request.settimeout(_PATIENCE)
            self.request.do_handshake()
        super().setup()

    def log_message(self, *_: Any) -> None:
        """Log nothing: a request's line contains the token."""

    def do_GET(self) -> None:
        """Answer with a file, the stream or a log."""
        self._answered(self._get)

    def do_POST(self) -> None:
        """Run an action."""
        self._answered(self._post)

    def _answered(self, answer: Callable[[str, dict[str, str]], None]) -> None:
        try:
            parts = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            self._from_here()
            if parts.path == "/" and "token" in query and self.command == "GET":
                self._exchange(query["token"])
                return
            self._identified()
            answer(parts.path, query)
        except (Refused, ValueError, RecursionError, UserError) as error:
            self.close_connection = True  # the body may be unread
            status = 500 if isinstance(error, UserError) else getattr(error, "status", 400)
            self._send(status, _TEXT, f"{error}\n")

    def _from_here(self) -> None:
        """Refuse other host names (DNS rebinding) and requests that other sites begin (CSRF)."""
        hosts = self.headers.get_all("Host") or []
        site = self.server.site
        if [host.lower() for host in hosts] != [site.name]:
            raise Refused(421, _PRINTED)  # only users who know the page's name may open it
        origins = self.headers.get_all("Origin") or []
        if any(origin != site.url for origin in origins):
            raise Refused(403, "another site sent this request")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise Refused(403, "another site sent this request: open the address in a new tab")
        if self.command == "POST" and not origins:
            raise Refused(403, "only the page itself may make changes")

    def _exchange(self, token: str) -> None:
        """Set the cookie for the right token, and remove the token from the address."""
        site = self.server.site
        if not hmac.compare_digest(token.encode(), site.token.encode()):
            raise Refused(403, "this token belongs to another run: open the address last printed")
        secure = "; Secure" if site.tls else ""
        cookie = f"{site.cookie}={site.session}; Path=/; HttpOnly; SameSite=Strict{secure}"
        self._send(303, _TEXT, "", {"Location": "/", "Set-Cookie": cookie})

    def _identified(self) -> None:
        site = self.server.site
        # SimpleCookie drops every cookie if it can't read the cookie of another program.
        cookies = (each.strip() for each in self.headers.get("Cookie", "").split(";"))
        pairs = (each.partition("=") for each in cookies)
        brought = next((value for name, _, value in pairs if name == site.cookie), "")
        if not hmac.compare_digest(brought.encode(), site.session.encode()):
            raise Refused(403, _PRINTED)
        self.server.connections.identified(self.connection)

    def _get(self, path: str, query: dict[str, str]) -> None:
        site = self.server.site
        if path == "/events":
            self._stream()
        elif path == "/log":
            host, service = query.get("host", ""), query.get("service", "")
            if service not in (site.fleet.services(host) or ()):
                raise Refused(404, "no such service")
            self._send(200, _TEXT, site.log(host, service))
        elif path in site.files:
            kind, content = site.files[path]
            self._send(200, f"{kind}; charset=utf-8", content())
        else:
            raise Refused(404, "this page does not exist")

    def _post(self, path: str, _: dict[str, str]) -> None:
        site = self.server.site
        if path != "/control" or site.control is None:
            raise Refused(403, "this page is read-only: start the dashboard with --control")
        length = int(self.headers.get("Content-Length", ""))
        if self.headers.get("Content-Type") != "application/json" or not 0 < length <= _BODY:
            raise Refused(400, "this is not a request of the page")
        body = json.loads(self.rfile.read(length))
        if not isinstance(body, dict):
            raise Refused(400, "this is not a request of the page")
        fields = [str(body.get(name, "")) for name in ("action", "host", "service")]
        done, text = site.control(*fields)
        self._send(200, "application/json", json.dumps({"done": done, "text": text}))

    def _stream(self) -> None:
        """Send every host, and then each changed host, until the page is closed."""
        site, version = self.server.site, 0
        fleet = site.fleet
        self.close_connection = True
        self._head(200, "text/event-stream", {"Connection": "close"})
        fleet.open(1)
        try:
            while True:
                version, changed = fleet.since(version, _BEAT)
                lines = [f"data: {json.dumps(data)}\n\n" for data in changed]
                beat = f"event: beat\ndata: {site.record()}\n\n"
                self.wfile.write("".join([*lines, beat]).encode())
        except OSError:
            return  # the page was closed
        finally:
            fleet.open(-1)

    def _send(self, status: int, kind: str, text: str, more: dict[str, str] | None = None) -> None:
        content = text.encode(errors="replace")
        self._head(status, kind, {"Content-Length": str(len(content)), **(more or {})})
        self.wfile.write(content)

    def _head(self, status: int, kind: str, more: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **_HEADERS, **more}.items():
            self.send_header(name, value)
        self.end_headers()
