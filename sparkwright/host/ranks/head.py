"""The head of a cluster: gathers its followers, starts with them, and ends when the first follower
ends.

One start of the head is a session. All engines of a session run one release, to which this host's
`current` points. A rank that ends also ends the session, and systemd starts each rank again.
"""

import contextlib
import socket
import threading
import time

from sparkwright.host.fetch.peer_auth import nonce
from sparkwright.host.lib import homes, ranks
from sparkwright.host.proxy import health, pool
from sparkwright.host.ranks import link as links
from sparkwright.host.ranks.start import AGAIN, FAILED, HEAD_LINGER, Rank
from sparkwright.host.service import Service

#: Largest number of connections: the ranks', and some of clients that have not identified
#: themselves yet.
_MOST = 64
#: Seconds without a request after which the head requests one token; seconds to answer; and seconds
#: without any sign of generation after which the cluster restarts.
IDLE, TOKEN, SILENT = 60.0, 300.0, 120.0


class Head(Rank):
    """The head during one start."""

    def __init__(self, service: Service, rank: ranks.RankConfig, key: str, release: str) -> None:
        super().__init__(service, rank, key, release)
        self._session = nonce()
        self._changed = threading.Condition()
        self._links: dict[int, links.Link] = {}
        #: Each follower's last reported step: lacks, ready or started.
        self._steps: dict[int, str] = {}
        self._gone = self._well = False
        self._over: tuple[int, str] | None = None
        self._few = threading.BoundedSemaphore(_MOST)

    def run(self) -> int:
        """Serve one session. Returns the exit code."""
        address = self._rank.addresses[0]
        try:
            listener = socket.create_server((address, self._rank.port + 1), backlog=_MOST)
        except OSError as error:
            # The address appears with the cable, so systemd's time limit must not apply.
            return self.again(f"address {address} is not on this host: {error.strerror}", 5)
        with listener:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            threading.Thread(target=self._beat, daemon=True).start()
            self._gather()
            if not self._over:
                self.start_engine()
                self.say(ranks.SERVING, session=self._session)
                threading.Thread(target=self._watch, daemon=True).start()
            while not self._over:
                ended = self.engine_ended()
                with self._changed:
                    # The engine may have ended because another rank ended; that rank's report
                    # arrives in a moment.
                    self._changed.wait_for(lambda: self._over, HEAD_LINGER if ended else 0.5)
                if ended:
                    self._end(FAILED, ended)
        code, why = self._over
        return self.again(why) if code == AGAIN else self.failed(why)

    # The session

    def _gather(self) -> None:
        """Wait for every follower without a time limit, then have all ranks start."""
        with self._changed:
            while not self._all("ready"):
                self.say(ranks.WAITING, *self._missing())
                self._changed.wait(1.0)
            self._gone = True
            self._send(go=self._session)
            while not self._all("started"):
                self._changed.wait(1.0)

    def _all(self, step: str) -> bool:
        """Return whether every follower has reached a step, or the session is over."""
        numbers = range(1, len(self._rank.hosts))
        return bool(self._over) or all(self._steps.get(number) == step for number in numbers)

    def _missing(self) -> list[str]:
        lacks = f"does not have release {self._release}"
        return [
            f"{self._name(number)} {lacks if step == 'lacks' else 'is not connected'}"
            for number in range(1, len(self._rank.hosts))
            if (step := self._steps.get(number)) != "ready"
        ]

    def _name(self, number: int) -> str:
        return f"rank {number} ({self._rank.hosts[number]})"

    def _end(self, code: int, why: str) -> None:
        """End the session; only the first reason counts."""
        with self._changed:
            self._over = self._over or (code, why)
            self._changed.notify_all()

    def _watch(self) -> None:
        """Check whether the engines generate tokens: /health only shows that the head's own loop
        runs.
        """
        gate = self._service.gate
        config = pool.HealthService(
            gate.name, gate.address, gate.secrets, gate.served_names[0], TOKEN, gate.port,
            routes=gate.routes,
        )  # fmt: skip
        service = health.Service(config, IDLE, gate.metric_names)
        began = time.monotonic()
        well: float | None = None
        while not self._over:
            time.sleep(links.BEAT)
            service.look()
            self._well = service.well
            now = time.monotonic()
            if service.well or (well and homes.maintenance()):
                well = now
            elif well is None and now - began > gate.boot_seconds:
                text = f"no answer {now - began:.0f} s after the start: {service.observed}"
                self._end(FAILED, text)
            elif well is not None and now - well > SILENT:
                self._end(FAILED, f"the engines do not generate: {service.observed}")

    # Followers

    def _send(self, **message: object) -> None:
        for link in list(self._links.values()):
            with contextlib.suppress(links.Lost):
                link.send(**message)

    def _beat(self) -> None:
        while not self._over:
            time.sleep(links.BEAT)
            self._send(beat=1, well=self._well)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, address = listener.accept()
            except OSError:
                return
            # Accept no data from addresses other than the followers'.
            if address[0] not in self._rank.addresses[1:] or not self._few.acquire(blocking=False):
                connection.close()
                continue
            arguments = (links.Link(connection), address[0])
            threading.Thread(target=self._serve, args=arguments, daemon=True).start()

    def _serve(self, link: links.Link, address: str) -> None:
        number = None
        try:
            number = self._greeted(link, address)
            while self._heard(link, number):
                pass
        except links.Lost as error:
            with self._changed:
                if number is not None and self._links.get(number) is link:
                    del self._links[number]
                    self._steps.pop(number, None)
                    if self._gone:
                        self._end(AGAIN, f"the connection to {self._name(number)} ended: {error}")
                    self._changed.notify_all()
        finally:
            link.close()
            self._few.release()

    def _greeted(self, link: links.Link, address: str) -> int:
        """Authenticate a follower and return its rank.

        Raises:
            Lost: the client is not a follower.
        """
        rank, mine = self._rank, nonce()
        link.send(nonce=mine)
        greeting = link.receive(links.GREETING)
        number, theirs = greeting.get("rank"), greeting.get("nonce")
        if (
            type(number) is not int
            or not 0 < number < len(rank.hosts)
            or not isinstance(theirs, str)
            or rank.addresses[number] != address
        ):
            raise links.Lost("it is not a rank of this cluster")
        name = self._service.name
        links.check_proof(greeting, links.follower_proof(self._key, name, number, mine))
        mac = links.head_proof(self._key, name, theirs, self._session, self._release)
        link.send(session=self._session, release=self._release, mac=mac)
        with self._changed:
            if self._gone:
                # This follower's engine is not the engine with which the session began.
                self._end(AGAIN, f"{self._name(number)} started again")
            before = self._links.get(number)
            self._links[number] = link
            self._steps.pop(number, None)
        if before is not None:
            before.close()
        return number

    def _heard(self, link: links.Link, number: int) -> bool:
        """Receive a follower's next message. Returns whether the link is still the follower's
        current link.
        """
        message = link.receive(links.PATIENCE)
        with self._changed:
            if self._links.get(number) is not link:
                return False
            if "lacks" in message:
                self._steps[number] = "lacks"
            for step in ("ready", "started"):
                if message.get(step) == self._session:
                    self._steps[number] = step
            if "ended" in message:
                self._end(FAILED, f"{self._name(number)}: {str(message['ended'])[:300]}")
            self._changed.notify_all()
        return True
