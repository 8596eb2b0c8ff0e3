"""A follower: waits for its head, runs the release that the head requests, and ends with the head.

The head's host chooses the release. A follower runs any staged release that the head requests, so
the head's switch, its reversal and a rollback apply to all ranks, even if a host lost power
meanwhile.
"""

import errno
import socket
import time
from pathlib import Path

from sparkwright.host.fetch.peer_auth import nonce
from sparkwright.host.lib import documents, files, ranks, systemd
from sparkwright.host.ranks import link as links
from sparkwright.host.ranks.start import LINGER, Rank

#: Seconds between two attempts to reach the head, and after an attempt from an address that the
#: host lacks.
_RETRY, _ABSENT = 1.0, 5.0


class Follower(Rank):
    """A follower during one start."""

    @property
    def _head(self) -> str:
        rank = self._rank
        return f"the head ({rank.hosts[0]}, {rank.addresses[0]}:{rank.port + 1})"

    def run(self) -> int:
        """Serve one session once the head offers a session. Returns the exit code."""
        addresses = self._rank.addresses
        # Connect from the rank's own address: the head accepts no other address.
        own = (addresses[self._rank.number], 0)
        while True:
            try:
                connection = socket.create_connection(
                    (addresses[0], self._rank.port + 1), timeout=links.GREETING, source_address=own
                )
                return self._session(links.Link(connection))
            except (OSError, links.Lost) as error:
                why = f"{self._head} can't be reached: {error}"
                # The rank's own address, and with it the engine's variables, exist only while the
                # cable is plugged in.
                if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
                    return self.again(why, _ABSENT)
                self.say(ranks.WAITING, why)
            time.sleep(_RETRY)

    def _session(self, link: links.Link) -> int:
        """Serve one session with the head. Returns the exit code.

        Raises:
            Lost: the link ended before the engine was started.
        """
        try:
            session, release = self._greeted(link)
            if release != self._release:
                return self._other(link, release)
            link.send(ready=session)
            self.say(ranks.WAITING, "the other ranks")
            while link.receive(links.PATIENCE).get("go") != session:
                link.send(beat=1)
            self.start_engine()
            link.send(started=session)
            self.say(ranks.SERVING, session=session)
            return self._together(link)
        finally:
            link.close()

    def _greeted(self, link: links.Link) -> tuple[str, str]:
        """Return the session and the release of a head that has proved its identity."""
        mine, number = nonce(), self._rank.number
        theirs = str(link.receive(links.GREETING).get("nonce"))
        proof = links.follower_proof(self._key, self._service.name, number, theirs)
        link.send(rank=number, nonce=mine, mac=proof)
        greeting = link.receive(links.GREETING)
        session, release = str(greeting.get("session")), str(greeting.get("release"))
        proof = links.head_proof(self._key, self._service.name, mine, session, release)
        links.check_proof(greeting, proof)
        return session, release

    def _other(self, link: links.Link, release: str) -> int:
        """Switch to the head's release as soon as this host has it. Returns the exit code."""
        path = Path(self._service.home, "releases", release)
        # Accept only names of existing releases; release.json is written last.
        while release not in {each.name for each in path.parent.iterdir()} or (
            documents.read(path / "release.json") is None
        ):
            self.say(ranks.WAITING, f"this host lacks release {release}, which {self._head} runs")
            link.keep(links.BEAT / 2, lacks=release)
        unit = systemd.UNITS / self._service.unit
        text = files.read(path / "unit.service")
        if text is not None and files.write(unit, text, 0o644):
            systemd.reload()
        files.point(Path(self._service.home, "current"), f"releases/{release}")
        return self.again(f"switching to release {release}")

    def _together(self, link: links.Link) -> int:
        """Serve until the head or the engine ends. Returns the exit code."""
        served = False
        try:
            while not (ended := self.engine_ended()):
                if link.keep(0.5, beat=1).get("well") and not served:
                    served = True
                    Path(self._service.home, ranks.SERVED).touch()
            # The engine ended by itself, or because the head's engine ended; the head reports its
            # engine's end in a moment.
            until = time.monotonic() + LINGER
            while (left := until - time.monotonic()) > 0:
                link.keep(left, beat=1)
            link.send(ended=ended)
        except links.Lost as error:
            # The head is gone with its engine, and the next head needs a new follower.
            return self.again(f"the connection to {self._head} ended: {error}")
        return self.failed(ended)
