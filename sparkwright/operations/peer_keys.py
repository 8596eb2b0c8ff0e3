"""The keys of a run's peers, derived from the fleet's secret, which stays on the controller."""

import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from urllib.parse import quote

from sparkwright.config.secrets import Secret
from sparkwright.host.fetch import peer_auth
from sparkwright.host.fetch.request import PeerKeys, TlsIdentity

#: On hosts, in memory only. One file per run, for the peer server.
SERVED = "/run/sparkwright/peers/served"
#: What the controller is called as a peer, when it serves a bundle: no host is called so.
CONTROLLER = "/controller"


@dataclass(frozen=True)
class Peer:
    """A host to take from: its name and http://address:port; how it is verified, where it serves by
    TLS."""

    name: str
    address: str
    tls: TlsIdentity | None = None


@dataclass(frozen=True)
class RunKeys:
    """The keys of one run.

    Attributes:
        secret: the fleet's.
        run: 32 hex digits, other ones in each run.
    """

    secret: Secret
    run: str = field(default_factory=peer_auth.nonce)

    def server(self, name: str) -> Secret:
        """A host's key as a server."""
        return Secret(peer_auth.server_key(self.secret.value, self.run, name))

    @property
    def server_file(self) -> str:
        """Where a host has that."""
        return f"{SERVED}/{self.run}"

    def leech(self, name: str, peers: Iterable[Peer]) -> Secret:
        """A host's PeerKeys, as text, for the peers that it takes from."""
        peers = tuple(peers)
        own_name = quote(name, safe="")
        keys = {
            peer.address: peer_auth.peer_key(self.server(peer.name).value, own_name)
            for peer in peers
        }
        tls = {peer.address: peer.tls for peer in peers if peer.tls}
        return Secret(json.dumps(asdict(PeerKeys(self.run, own_name, keys, tls))))


#: For those who name none: hosts then take nothing from each other, and only their own Docker asks.
THIS_PROCESS = RunKeys(Secret(secrets.token_urlsafe(32)))
