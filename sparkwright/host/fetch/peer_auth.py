"""Authentication between peers: each peer proves that it has a key without sending the key.

The fleet's secret stays on the controller. Each run derives a key for each serving host, and from
this key another key for each host that fetches from the serving host. A thief of one host's keys
can't answer for any other host. Every request signs a challenge that the server accepts once, on
one connection; every answer signs the nonce of its request. Neither side needs a clock.
"""

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
#: Hash of an empty body: requests have no body.
EMPTY = hashlib.sha256().hexdigest()


def nonce() -> str:
    """Return a number that is used once: 32 hex digits."""
    return secrets.token_hex(16)


def mac(key: str, *parts: str) -> str:
    """Return the HMAC-SHA256 of texts in hex digits. Different lists of texts are different inputs
    of the HMAC.
    """
    return hmac.new(key.encode(), json.dumps(parts).encode(), hashlib.sha256).hexdigest()


def server_key(secret: str, run: str, host: str) -> str:
    """Return the key of a serving host for one run."""
    return mac(secret, "peer server", run, host)


def peer_key(server: str, peer: str) -> str:
    """Return the key with which one host fetches from a peer."""
    return mac(server, "peer", peer)


def docker_password(server: str) -> str:
    """Return the password with which a host's own Docker reads from the server over loopback. No
    request can be signed with the password.
    """
    return mac(server, "docker")


def authorization(key: str, run: str, peer: str, number: str, *signed: str) -> str:
    """Return the Authorization header of a request."""
    made = mac(key, "request", number, *signed)
    return f"Sparkwright run={run} peer={peer} nonce={number} mac={made}"


def claimed(header: str) -> tuple[str, str, str, str] | None:
    """Return the run, peer, nonce and MAC of an Authorization header; None if malformed."""
    match = _AUTHORIZATION.fullmatch(header)
    return match and (match[1], match[2], match[3], match[4])


def answer(key: str, number: str, *signed: str) -> str:
    """Return the MAC of an answer."""
    return mac(key, "answer", number, *signed)


def is_answer(key: str, made: str, number: str, *signed: str) -> bool:
    """Return whether an answer's MAC is right."""
    return hmac.compare_digest(made.encode(), answer(key, number, *signed).encode())
