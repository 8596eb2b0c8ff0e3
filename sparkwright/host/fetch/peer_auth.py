"""How peers prove to each other that they know a key, which itself is never sent.

The fleet's secret stays on the controller. Each run derives a key for each host that serves, and
from that one a key for each host that takes from it: whoever has a host's keys can answer for no
other host. Every request signs a challenge of the server's that counts once, on one connection;
every answer signs the nonce of its request. Neither needs a clock.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets

RUN = re.compile(r"[0-9a-f]{32}")
_AUTHORIZATION = re.compile(
    r"Sparkwright run=([0-9a-f]{32}) peer=([\w.~%-]{1,255}) nonce=([0-9a-f]{32})"
    r" mac=([0-9a-f]{64})",
    re.ASCII,
)
#: The hash of an empty body: requests have none.
EMPTY = hashlib.sha256().hexdigest()


def nonce() -> str:
    """A number that is used once: 32 hex digits."""
    return secrets.token_hex(16)


def mac(key: str, *parts: str) -> str:
    """HMAC-SHA256 over words, in hex digits. No other words give the same text."""
    return hmac.new(key.encode(), json.dumps(parts).encode(), hashlib.sha256).hexdigest()


def server_key(secret: str, run: str, host: str) -> str:
    """The key of a host that serves, in one run."""
    return mac(secret, "peer server", run, host)


def peer_key(server: str, peer: str) -> str:
    """The key with which a host takes from a peer."""
    return mac(server, "peer", peer)


def docker_password(server: str) -> str:
    """Password of a host's own Docker for the server, over loopback; it can sign nothing."""
    return mac(server, "docker")


def authorization(key: str, run: str, peer: str, number: str, *signed: str) -> str:
    """The Authorization header of a request."""
    made = mac(key, "request", number, *signed)
    return f"Sparkwright run={run} peer={peer} nonce={number} mac={made}"


def claimed(header: str) -> tuple[str, str, str, str] | None:
    """Run, peer, nonce and MAC of an Authorization header; None if it is not one."""
    match = _AUTHORIZATION.fullmatch(header)
    return match and (match[1], match[2], match[3], match[4])


def answer(key: str, number: str, *signed: str) -> str:
    """The MAC of an answer."""
    return mac(key, "answer", number, *signed)


def is_answer(key: str, made: str, number: str, *signed: str) -> bool:
    """Whether an answer's MAC is right."""
    return hmac.compare_digest(made.encode(), answer(key, number, *signed).encode())
