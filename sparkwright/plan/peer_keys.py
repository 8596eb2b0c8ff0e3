"""The keys of a run's peers, derived from the fleet's secret, which stays on the controller."""

import json
import secrets
from collections.abc import Iterable
from urllib.parse import quote

from sparkwright.config.secrets import Secret
from sparkwright.host.fetch import peer_auth
from sparkwright.host.fetch.request import PeerKeys, TlsIdentity
from sparkwright.host.lib.records import dataclass, encode, field

#: Directory on hosts, in memory only, with one file per run for the peer server.
SERVED = "/run/sparkwright/peers/served"
#: The controller's name as a peer that serves a bundle; no host can have this name.
CONTROLLER = "/controller"


@dataclass(frozen=True)
class Peer:
    """A host to fetch from: its name, http://address:port, and its TLS identity, if any."""

    name: str
    address: str
    tls: TlsIdentity | None = None


@dataclass(frozen=True)
class RunKeys:
    """Keys of one run.

    Attributes:
        secret: the fleet's secret.
        run: id of the run: 32 random hex digits.
    """

    secret: Secret
    run: str = field(default_factory=peer_auth.nonce)

    def server(self, name: str) -> Secret:
        """A host's key as a server."""
        return Secret(peer_auth.server_key(self.secret.value, self.run, name))

    @property
    def server_file(self) -> str:
        """Path of the keys on a host."""
        return f"{SERVED}/{self.run}"

    def leech(self, name: str, peers: Iterable[Peer]) -> Secret:
        """A host's PeerKeys, as text, for the peers that it fetches from."""
        peers = tuple(peers)
        own_name = quote(name, safe="")
        keys = {
            peer.address: peer_auth.peer_key(self.server(peer.name).value, own_name)
            for peer in peers
        }
        tls = {peer.address: peer.tls for peer in peers if peer.tls}
        return Secret(json.dumps(encode(PeerKeys(self.run, own_name, keys, tls))))


#: Default keys, for callers that pass no keys: hosts then share nothing, and only a host's own
#: Docker sends requests.
THIS_PROCESS = RunKeys(Secret(secrets.token_urlsafe(32)))
