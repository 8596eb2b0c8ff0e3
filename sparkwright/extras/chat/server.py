"""A service's published port: over the network, or through the user's ssh where it is shut.

The server is verified by its name and its CA on both ways, nothing of the environment (proxies,
netrc) is used, and no redirect is followed: the key goes to the planned address alone.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sparkwright.config.ssh import ssh
from sparkwright.extras.chat.targets import Target
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake
from sparkwright.host.lib.http import Answer, NoAnswer, Server
from sparkwright.text.visible import cut

#: Seconds for a connection and the list of models, and for a login before it.
_DIRECT, _LOGIN = 4.0, 15.0
_MODELS = "/v1/models"
#: Seconds that ssh has to end by itself, once nobody listens to it.
_ENDING = 0.2


class Unusable(Exception):
    """A service that can't be spoken to, and why."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__()
        self.findings = tuple(findings)


@dataclass(frozen=True)
class Published(Server):
    """A server of another machine.

    Attributes:
        context: how https is verified; None for http.
        through: ssh's command that connects standard input and output with it; empty without one.
    """

    context: ssl.SSLContext | None = None
    through: tuple[str, ...] = ()
    _tunnels: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def connected(self, timeout: float) -> http.client.HTTPConnection:
        """See Server."""
        self.hang_up()
        connection = http.client.HTTPConnection(self.address, self.port, timeout=timeout)
        if self.context:
            connection = http.client.HTTPSConnection(
                self.address, self.port, timeout=timeout, context=self.context
            )
        if self.through:
            try:
                connection.sock = self._tunnelled(timeout)
            except OSError as error:
                raise NoAnswer(error) from error
        return connection

    def _tunnelled(self, timeout: float) -> socket.socket:
        """No port is opened here, where other users could come in by it."""
        ours, theirs = socket.socketpair()
        with theirs:
            end = theirs.fileno()
            self._tunnels.append(
                subprocess.Popen(
                    self.through, stdin=end, stdout=end, stderr=subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C ends an answer, and no login of a further one
                )
            )  # fmt: skip
        ours.settimeout(timeout)
        try:
            if self.context:
                return self.context.wrap_socket(ours, server_hostname=self.address)
        except OSError:
            ours.close()
            raise
        return ours

    def hang_up(self) -> str:
        """End the tunnel of the last request. Returns the last line that ssh said."""
        last = ""
        while self._tunnels:
            with self._tunnels.pop() as process:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_ENDING)
                process.kill()
                process.wait()
                assert process.stderr is not None
                # Whatever ssh started may have it open still.
                os.set_blocking(process.stderr.fileno(), False)
                lines = (process.stderr.read() or b"").decode(errors="replace").split("\n")
                last = next((one.strip() for one in reversed(lines) if one.strip()), "")
        return last


def opened(target: Target) -> Published:
    """The way to a service: one that answers with its names.

    Raises:
        Unusable: when there is none. A server that fails its verification is not tried otherwise.
        UserError: when there is no key.
    """
    parts = urlsplit(target.endpoint.base_url)
    assert parts.hostname is not None
    assert parts.port is not None
    address, port, key = parts.hostname, parts.port, target.key.value
    try:
        context = _context(target.endpoint.ca) if parts.scheme == "https" else None
    except OSError as error:
        ca = target.endpoint.ca or "tls"
        remedy = "deploy first, which makes it, or name the CA in tls"
        raise Unusable([mistake(ca, f"the CA can't be read: {error}", remedy)]) from None
    why = "it listens on the host alone"
    if target.published:
        server = Published(address, port, key, context=context)
        try:
            return _judged(target, server, server.get(_MODELS, timeout=_DIRECT))
        except NoAnswer as error:
            _refuse_unverified(target, error)
            why = str(error)
    own, inner = target.inner
    at = f"[{own}]:{inner}" if ":" in own else f"{own}:{inner}"
    words = ssh(target.endpoint.host, target.data, "-W", at)
    server = Published(address, port, key, context=context, through=tuple(words))
    try:
        return _judged(target, server, server.get(_MODELS, timeout=_LOGIN))
    except NoAnswer as error:
        _refuse_unverified(target, error)
        said = server.hang_up() or str(error)
        what = f"no answer at {target.endpoint.base_url} ({why}), nor through ssh: {cut(said, 200)}"
        remedy = f"sparkwright doctor --limit {target.endpoint.host} names the cause; a firewall " \
                 "must let this machine in"  # fmt: skip
        raise Unusable([mistake(target.endpoint.service, what, remedy, target.endpoint.host)]) \
            from None  # fmt: skip


def _context(ca: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _refuse_unverified(target: Target, error: NoAnswer) -> None:
    """Whoever shows another certificate is not asked by another way."""
    if error.kind == ssl.SSLCertVerificationError.__name__:
        ca = target.endpoint.ca or "the public CAs"
        what = f"{target.endpoint.base_url} can't be verified by {ca}: {cut(str(error), 200)}"
        remedy = "another machine may answer there, or the certificate is an old one: deploy again"
        found = mistake(target.endpoint.service, what, remedy, target.endpoint.host)
        raise Unusable([found]) from None


def _judged(target: Target, server: Published, answer: Answer) -> Published:
    """The server, when it has the name and takes the key."""
    names: list[str] = []
    with suppress(ValueError, TypeError, KeyError):
        names = [str(one["id"]) for one in answer.json()["data"]]
    if answer.status == 200 and target.served.name in names:
        return server
    what, remedy = _wrong(target, answer.status, names)
    at = f"{target.endpoint.base_url} {what}"
    raise Unusable([mistake(target.endpoint.service, at, remedy, target.endpoint.host)])


def _wrong(target: Target, status: int, names: Sequence[str]) -> tuple[str, str]:
    """What is wrong with an answer, and the remedy."""
    if status == 200:
        has = f", but {cut(', '.join(names), 200)}" if names else ""
        return f"does not serve {target.served.name!r}{has}", "sparkwright deploy"
    if status in (401, 403):
        return "refuses the API key", "take the key of the fleet that serves: api_key_file, or " \
                                      "SPARKWRIGHT_API_KEY"  # fmt: skip
    if 300 <= status < 400:
        return "redirects elsewhere, and the key is shown to nobody else", \
            "sparkwright doctor: something else has the port"  # fmt: skip
    if status in (502, 503):
        return f"has nobody behind it (HTTP {status})", "wait while it starts: sparkwright status"
    return f"answers HTTP {status}", "sparkwright doctor"
