"""A follower: waits for its head, runs the release that it asks for, and ends with it.

The head's host decides. A follower has no opinion on which release is right: what was staged here
is run as soon as the head asks for it, and so a switch, its way back and a rollback of the head are
those of all ranks, whoever lost power meanwhile.
"""

from __future__ import annotations

import errno
import socket
import time
from pathlib import Path

from sparkwright.host.fetch.peer_auth import nonce
from sparkwright.host.lib import documents, files, systemd
from sparkwright.host.lib.ranks import SERVING, WAITING, RankConfig
from sparkwright.host.ranks.engine import LINGER, Rank
from sparkwright.host.ranks.link import (
    BEAT,
    GREETING,
    PATIENCE,
    Late,
    Link,
    Lost,
    check_proof,
    follower_proof,
    head_proof,
)
from sparkwright.host.service import Service

#: Seconds between two tries to reach the head, and before one with an address that is not there.
_RETRY, _ABSENT = 1.0, 5.0


class Follower(Rank):
    """A follower, for one start."""

    def __init__(self, service: Service, rank: RankConfig, key: str, release: str) -> None:
        super().__init__(service, rank, key, release)
        self._head = f"the head ({rank.hosts[0]}, {rank.addresses[0]}:{rank.port + 1})"

    def run(self) -> int:
        """Serve one session, as soon as there is one. Returns the exit code."""
        while True:
            try:
                code = self._session(self._connected())
                if code is not None:
                    return code
            except (OSError, Lost, Late) as error:
                why = f"{self._head} is not there: {error}".rstrip(": ")
                # Its own address comes with the cable, and with it what the engine is to know.
                if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
                    return self.again(why, _ABSENT)
                self.say(WAITING, why)
            time.sleep(_RETRY)

    def _connected(self) -> Link:
        # From its own address among the ranks: the head takes no other.
        return Link(
            socket.create_connection(
                (self._rank.addresses[0], self._rank.port + 1),
                timeout=GREETING,
                source_address=(self._rank.addresses[self._rank.number], 0),
            )
        )

    def _session(self, link: Link) -> int | None:
        """Serve one session with the head; None when it ended before the engine was started."""
        try:
            session, release = self._greeted(link)
            if release != self._release:
                return self._other(link, release)
            link.send(ready=session)
            self.say(WAITING, "the other ranks")
            while link.receive(PATIENCE).get("go") != session:
                link.send(beat=1)
            self.start_engine()
            link.send(started=session)
            self.say(SERVING, session=session)
            return self._together(link)
        finally:
            link.close()

    def _greeted(self, link: Link) -> tuple[str, str]:
        """Session and release of a head that has proved to be it."""
        mine, number = nonce(), self._rank.number
        theirs = str(link.receive(GREETING).get("nonce"))
        proof = follower_proof(self._key, self._service.name, number, theirs)
        link.send(rank=number, nonce=mine, mac=proof)
        greeting = link.receive(GREETING)
        session, release = str(greeting.get("session")), str(greeting.get("release"))
        proof = head_proof(self._key, self._service.name, mine, session, release)
        check_proof(greeting, proof)
        return session, release

    def _other(self, link: Link, release: str) -> int:
        """The head runs another release: go there, as soon as it is here."""
        message, heard = 0.0, time.monotonic()
        while not self._staged(release):
            self.say(WAITING, f"release {release}, which {self._head} runs, is not here")
            if time.monotonic() - message > BEAT:
                message = time.monotonic()
                link.send(lacks=release)
            try:
                link.receive(BEAT / 2)
                heard = time.monotonic()
            except Late:
                if time.monotonic() - heard > PATIENCE:
                    raise Lost(f"nothing was heard for {PATIENCE:.0f} s") from None
        path = Path(self._service.home, "releases", release)
        unit = systemd.UNITS / self._service.unit
        text = files.read(path / "unit.service")
        if text is not None and files.write(unit, text, 0o644):
            systemd.reload()
        files.point(Path(self._service.home, "current"), f"releases/{release}")
        return self.again(f"going to release {release}")

    def _staged(self, release: str) -> bool:
        """Whether a release of this name is whole on this host: release.json is written last."""
        place = Path(self._service.home, "releases", release)
        # Only what lies here is a name.
        there = {path.name for path in place.parent.iterdir()}
        return release in there and documents.read(place / "release.json") is not None

    def _together(self, link: Link) -> int:
        """As long as head and engine are there."""
        heard, message = time.monotonic(), 0.0
        while True:
            now = time.monotonic()
            try:
                if now - message > BEAT:
                    message = now
                    link.send(beat=1)
                link.receive(0.5)
                heard = now
            except Late:
                if now - heard > PATIENCE:
                    return self._left(f"nothing was heard for {PATIENCE:.0f} s")
            except Lost as error:
                return self._left(str(error))
            if ended := self.engine_ended():
                return self._ended(link, ended)

    def _ended(self, link: Link, ended: str) -> int:
        """Its engine is gone: by itself, or since the head's is."""
        until = time.monotonic() + LINGER
        try:
            while (left := until - time.monotonic()) > 0:
                try:
                    link.receive(left)
                except Late:
                    break
            link.send(ended=ended)
        except Lost as error:
            return self._left(str(error))
        return self.failed(ended)

    def _left(self, why: str) -> int:
        """The head is gone, and its engine with it: the next one needs a fresh follower."""
        return self.again(f"{self._head} is gone: {why}")
