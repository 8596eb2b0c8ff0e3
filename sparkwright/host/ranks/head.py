"""The head of a cluster: gathers its followers, starts with them, and ends with the first of them.

One start of the head is a session. A session has one release, the one that this host's `current`
leads to, and no engine of an earlier one in it: whatever ends on any rank ends the session, and
systemd starts each rank again.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from sparkwright.host.fetch.peer_auth import nonce
from sparkwright.host.lib import homes
from sparkwright.host.lib.ranks import SERVING, WAITING, RankConfig
from sparkwright.host.proxy import health
from sparkwright.host.proxy.pool import HealthService
from sparkwright.host.ranks.engine import AGAIN, FAILED, HEAD_LINGER, Rank
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

#: Connections at a time: those of the ranks, and some that have not said yet who they are.
_MOST = 64
#: Seconds without a request after which the engine is asked for one token; seconds that it gets;
#: and seconds without any sign of generation after which the cluster starts again.
IDLE, TOKEN, SILENT = 60.0, 300.0, 120.0


class Head(Rank):
    """The head, for one start."""

    def __init__(self, service: Service, rank: RankConfig, key: str, release: str) -> None:
        super().__init__(service, rank, key, release)
        self._session = nonce()
        self._changed = threading.Condition()
        self._links: dict[int, Link] = {}
        self._ready: set[int] = set()
        self._started: set[int] = set()
        self._lacking: dict[int, str] = {}
        self._gone = False
        self._over: tuple[int, str] | None = None
        self._few = threading.BoundedSemaphore(_MOST)

    def run(self) -> int:
        """Serve one session. Returns the exit code."""
        try:
            listener = socket.create_server(
                (self._rank.addresses[0], self._rank.port + 1), backlog=_MOST
            )
        except OSError as error:
            # The address comes with the cable: systemd's limit is not for that.
            return self.again(f"{self._rank.addresses[0]} is not there: {error.strerror}", 5)
        with listener:
            for program in (self._accept, self._beat):
                threading.Thread(target=program, args=(listener,), daemon=True).start()
            self._gather()
            if not self._over:
                self.start_engine()
                self.say(SERVING, session=self._session)
                threading.Thread(target=self._watch, daemon=True).start()
            self._until_over()
        assert self._over
        code, why = self._over
        return self.again(why) if code == AGAIN else self.failed(why)

    # The session

    def _gather(self) -> None:
        """Wait for every follower, as long as it takes; then have each start."""
        everyone = set(range(1, len(self._rank.hosts)))
        with self._changed:
            while self._ready != everyone and not self._over:
                self.say(WAITING, *self._missing(everyone))
                self._changed.wait(1.0)
            self._gone = True
            for link in self._links.values():
                with contextlib.suppress(Lost):
                    link.send(go=self._session)
            while self._started != everyone and not self._over:
                self._changed.wait(1.0)

    def _missing(self, everyone: set[int]) -> list[str]:
        return [
            f"rank {number} ({self._rank.hosts[number]}) "
            + self._lacking.get(number, "is not there")
            for number in sorted(everyone - self._ready)
        ]

    def _until_over(self) -> None:
        while not self._over:
            ended = self.engine_ended()
            with self._changed:
                if ended is None:
                    self._changed.wait(0.5)
                    continue
                # It may have ended since another rank did, which is heard of in a moment.
                self._changed.wait_for(lambda: self._over, HEAD_LINGER)
            self._end(FAILED, ended)

    def _end(self, code: int, why: str) -> None:
        """The session is over; the first reason stays."""
        with self._changed:
            self._over = self._over or (code, why)
            self._changed.notify_all()

    def _watch(self) -> None:
        """Whether the engines generate: /health says only that the head's own loop runs."""
        gate = self._service.gate
        model, secrets = gate.served_names[0], self._service.secrets
        config = HealthService(gate.name, gate.port, 0, secrets, model, TOKEN)
        service = health.Service(config, IDLE, gate.metric_names)
        began = time.monotonic()
        well: float | None = None
        while not self._over:
            time.sleep(BEAT)
            service.look()
            now = time.monotonic()
            if service.well or (well and homes.maintenance()):
                well = now
            elif well is None and now - began > gate.boot_seconds:
                self._end(FAILED, f"no answer {now - began:.0f} s after the start: {service.said}")
            elif well is not None and now - well > SILENT:
                self._end(FAILED, f"the engines do not generate: {service.said}")

    # Followers

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, address = listener.accept()
            except OSError:
                return
            # Of every address but the followers' nothing is even read.
            if address[0] not in self._rank.addresses[1:] or not self._few.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(
                target=self._serve, args=(Link(connection), address[0]), daemon=True
            ).start()

    def _beat(self, _: socket.socket) -> None:
        while not self._over:
            time.sleep(BEAT)
            with self._changed:
                links = list(self._links.values())
            for link in links:
                with contextlib.suppress(Lost):
                    link.send(beat=1)

    def _serve(self, link: Link, address: str) -> None:
        number = None
        try:
            number = self._greeted(link, address)
            self._heard(link, number)
        except (Lost, Late) as error:
            if number is not None:
                self._left(link, number, str(error) or f"nothing was heard for {PATIENCE:.0f} s")
        finally:
            link.close()
            self._few.release()

    def _greeted(self, link: Link, address: str) -> int:
        """Authenticate a follower and return its rank.

        Raises:
            Lost: it is none of the followers.
        """
        rank, mine = self._rank, nonce()
        link.send(nonce=mine)
        text = link.receive(GREETING)
        number, theirs = text.get("rank"), text.get("nonce")
        if (
            type(number) is not int
            or not 0 < number < len(rank.hosts)
            or not isinstance(theirs, str)
            or rank.addresses[number] != address
        ):
            raise Lost("it is no rank of this cluster")
        check_proof(text, follower_proof(self._key, self._service.name, number, mine))
        mac = head_proof(self._key, self._service.name, theirs, self._session, self._release)
        link.send(session=self._session, release=self._release, mac=mac)
        with self._changed:
            if self._gone:
                # Its engine is another one than that this session began with.
                self._end(AGAIN, f"rank {number} ({rank.hosts[number]}) started again")
            before = self._links.get(number)
            self._links[number] = link
            self._ready.discard(number)
        if before is not None:
            before.close()
        return number

    def _heard(self, link: Link, number: int) -> None:
        name = f"rank {number} ({self._rank.hosts[number]})"
        while True:
            text = link.receive(PATIENCE)
            with self._changed:
                if self._links.get(number) is not link:
                    return
                if "lacks" in text:
                    self._lacking[number] = f"does not have release {self._release}"
                elif text.get("ready") == self._session:
                    self._ready.add(number)
                elif text.get("started") == self._session:
                    self._started.add(number)
                elif "ended" in text:
                    self._end(FAILED, f"{name}: {str(text['ended'])[:300]}")
                self._changed.notify_all()

    def _left(self, link: Link, number: int, why: str) -> None:
        with self._changed:
            if self._links.get(number) is not link:
                return
            del self._links[number]
            self._ready.discard(number)
            self._lacking.pop(number, None)
            if self._gone:
                name = self._rank.hosts[number]
                self._end(AGAIN, f"rank {number} ({name}) is gone: {why}")
            self._changed.notify_all()
