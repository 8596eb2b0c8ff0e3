"""Ranks over several hosts (`--nnodes`), which join and end as in vLLM 0.32.0.

The head listens on every address at --master-port and starts once all followers are connected.
After the loss of a rank, the next request fails with 500; then the head ends, with status 0. A
follower does not notice the end of its head: it keeps running, and no later head can use it.
"""

import argparse
import asyncio
import contextlib
import os
import socket
import time

from . import log
from .faults import engine_dead
from .refusal import Refusal

_PATIENCE_SECONDS = 600
"""Time limit of torch's store, in seconds."""


class Ranks:
    """Connections to the followers; a single host has no followers."""

    def __init__(self, links: dict[int, socket.socket]) -> None:
        self._links = links

    def before_generation(self) -> None:
        """Raise ApiError with status 500 if a follower is gone; the engine ends a moment later."""
        gone = [rank for rank, link in self._links.items() if _closed(link)]
        if gone:
            log.engine(
                "ERROR", "core.py:1240", f"EngineCore encountered a fatal error: rank {gone}"
            )
            asyncio.get_running_loop().call_later(0.2, os._exit, 0)
            raise engine_dead()


def gather(arguments: argparse.Namespace) -> Ranks | None:
    """Wait for all ranks; None on a follower, which has joined its head and serves no requests.

    Raises:
        Refusal: ranks are missing at the deadline.
    """
    if arguments.nnodes <= 1:
        return Ranks({})
    world = f"world_size={arguments.nnodes} rank={arguments.node_rank} backend=gloo"
    if arguments.node_rank == 0:
        links = _followers(arguments.master_port, arguments.nnodes - 1)
        log.engine("INFO", "parallel_state.py:1234", world)
        return Ranks(links)
    _join(arguments.master_addr, arguments.master_port, arguments.node_rank)
    log.engine("INFO", "parallel_state.py:1234", world)
    return None


def _followers(port: int, count: int) -> dict[int, socket.socket]:
    links: dict[int, socket.socket] = {}
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with socket.create_server(("0.0.0.0", port), backlog=16) as listener:
        listener.settimeout(1)
        while len(links) < count:
            if time.monotonic() > deadline:
                raise Refusal(
                    "torch.distributed.DistStoreError",
                    f"Timed out after {_PATIENCE_SECONDS + 1} seconds waiting for clients. "
                    f"{len(links) + 1}/{count + 1} clients joined.",
                    engine=True,
                )
            with contextlib.suppress(OSError, ValueError):
                link, _ = listener.accept()
                link.settimeout(5)
                links[int(link.recv(16) or b"-")] = link
    for link in links.values():
        link.sendall(b"go")
        link.setblocking(False)
    return links


def _join(address: str, port: int, rank: int) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            link = socket.create_connection((address, port), timeout=5)
            link.sendall(str(rank).encode())
            link.settimeout(_PATIENCE_SECONDS)
            if link.recv(2) == b"go":
                _kept.append(link)
                return
        time.sleep(0.2)
    raise Refusal(
        "torch.distributed.DistNetworkError",
        f"The client socket has timed out after {_PATIENCE_SECONDS * 1000}ms while trying to "
        f"connect to ({address}, {port}).",
        engine=True,
    )


#: A follower's connection lasts as long as the follower's process.
_kept: list[socket.socket] = []


def _closed(link: socket.socket) -> bool:
    try:
        return link.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
