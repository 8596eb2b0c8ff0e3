"""Connection to a service's port: over the network, or through the user's ssh if the port is
closed.

The server is verified by its name and its CA on both paths, no proxy or netrc of the environment is
used, and no redirect is followed: the key goes only to the planned address.
"""

import http.client
import os
import socket
import ssl
import subprocess
from contextlib import suppress
from urllib.parse import urlsplit

from sparkwright.config.ssh import ssh
from sparkwright.extras.chat.targets import MESSAGES, Target
from sparkwright.findings.finding import Finding
from sparkwright.host.lib import model_list
from sparkwright.host.lib.http import Answer, NoAnswer, Server
from sparkwright.host.lib.records import dataclass, field, replace
from sparkwright.text.visible import cut

#: Seconds for a connection and the list of models, and for a login before the connection.
_DIRECT, _LOGIN = 4.0, 15.0
_MODELS = "/v1/models"
#: Seconds for ssh to end by itself, once its output is closed.
_ENDING = 0.2
#: Statuses, in answers to the request for the models, that have a separate message.
_STATUSES = ("redirect", "200", "401", "403", "502", "503")


class Unusable(Exception):
    """A service that can't be reached, with the reason."""

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding


@dataclass(frozen=True)
class Published(Server):
    """A server on another machine.

    Attributes:
        context: verification of https; None for http.
        through: ssh command that connects standard input and output with the server; empty for a
            direct connection.
    """

    context: ssl.SSLContext | None = None
    through: tuple[str, ...] = ()
    _tunnels: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def connected(self, timeout: float) -> http.client.HTTPConnection:
        """Open a connection to the server, directly or through ssh."""
        self.hang_up()
        at = self.address, self.port
        connection = http.client.HTTPConnection(*at, timeout=timeout)
        if self.context:
            connection = http.client.HTTPSConnection(*at, timeout=timeout, context=self.context)
        if self.through:
            try:
                connection.sock = self._tunnelled(timeout)
            except OSError as error:
                raise NoAnswer(error) from error
        return connection

    def _tunnelled(self, timeout: float) -> socket.socket:
        """Return a socket that ssh forwards; no port is opened on this machine, since other users
        could use the port.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            end = theirs.fileno()
            tunnel = subprocess.Popen(
                self.through, stdin=end, stdout=end, stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C does not reach ssh
            )  # fmt: skip
            self._tunnels.append(tunnel)
        ours.settimeout(timeout)
        try:
            if self.context:
                return self.context.wrap_socket(ours, server_hostname=self.address)
        except OSError:
            ours.close()
            raise
        return ours

    def hang_up(self) -> str:
        """End the tunnel of the last request. Return the last line of ssh's output."""
        last = ""
        while self._tunnels:
            with self._tunnels.pop() as process:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_ENDING)
                process.kill()
                process.wait()
                assert process.stderr is not None
                # A program that ssh started may still hold the pipe open.
                os.set_blocking(process.stderr.fileno(), False)
                lines = (process.stderr.read() or b"").decode(errors="replace").split("\n")
                last = ([line.strip() for line in lines if line.strip()] or [""])[-1]
        return last


def opened(target: Target) -> Published:
    """Return a connection over which the service answers with its names.

    Raises:
        Unusable: no connection reaches the service. If a server's verification fails, no other
            connection to the server is tried.
        UserError: the key is missing.
    """
    endpoint = target.endpoint
    parts = urlsplit(endpoint.base_url)
    assert parts.hostname is not None
    assert parts.port is not None
    try:
        context = _context(endpoint.ca) if parts.scheme == "https" else None
    except OSError as error:
        where = endpoint.ca or "tls"
        raise Unusable(MESSAGES.mistake("unreadable-ca", where, error=error)) from None
    direct = Published(parts.hostname, parts.port, target.key.value, context=context)
    own, inner = target.inner
    at = f"[{own}]:{inner}" if ":" in own else f"{own}:{inner}"
    through = replace(direct, through=tuple(ssh(endpoint.host, target.data, "-W", at)), _tunnels=[])
    reasons = [] if target.published else ["the service listens only on the host"]
    for server in (direct, through) if target.published else (through,):
        try:
            answer = server.get(_MODELS, timeout=_LOGIN if server.through else _DIRECT)
        except NoAnswer as error:
            # A server with a wrong certificate gets no request over another connection.
            if error.kind == ssl.SSLCertVerificationError.__name__:
                facts = {"by": endpoint.ca or "the public CAs", "error": cut(str(error), 200)}
                raise Unusable(target.problem("not-verified", **facts)) from None
            reasons.append(server.hang_up() or str(error))
        else:
            return _judged(target, server, answer)
    why, by_ssh = reasons
    raise Unusable(target.problem("no-answer", why=why, by_ssh=cut(by_ssh, 200)))


def _context(ca: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _judged(target: Target, server: Published, answer: Answer) -> Published:
    """Return the server if it has the name and accepts the key."""
    names: list[str] = []
    with suppress(ValueError, TypeError, KeyError):
        names = model_list.names(answer.json())
    if answer.status == 200 and target.served.name in names:
        return server
    status = "redirect" if 300 <= answer.status < 400 else str(answer.status)
    others = f", but {cut(', '.join(names), 200)}" if names else ""
    message = status if status in _STATUSES else "other"
    raise Unusable(target.problem(message, status=status, others=others))
