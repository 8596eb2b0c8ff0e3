"""Echo requests (ping) over a given interface, without an installed tool.

Raw sockets need root.
"""

import errno
import os
import socket
import struct
import time

from sparkwright.host.lib.records import dataclass


@dataclass(frozen=True)
class Ping:
    """Request for a ping of an IPv4 address over a device, with ``size`` bytes of payload."""

    address: str
    device: str
    size: int


#: Linux constants that the socket module lacks: "don't fragment", like ``ping -M do``.
_IP_MTU_DISCOVER, _DO = 10, 2
_MOST = 1 << 16


def echo(address: str, device: str, size: int = 56, *, tries: int = 3, wait: float = 1.0) -> str:
    """Ping an IPv4 address over a device with unfragmented packets.

    Args:
        size: bytes of payload: 8972 fill an MTU of 9000.

    Returns:
        The fault; empty if the address answers.
    """
    try:
        with _socket(socket.AF_INET, socket.IPPROTO_ICMP, device) as link:
            link.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _DO)
            for number in range(tries):
                link.sendto(_packet(8, number, size), (address, 0))
                if address in _replies(link, 0, 20, number, wait, size):
                    return ""
    except OSError as error:
        if error.errno == errno.EMSGSIZE:
            return f"message too long for {device}"
        return error.strerror or str(error)
    return "no answer"


def all_nodes(device: str, wait: float = 1.0) -> set[str]:
    """Return link-local addresses that answer at a device (``ping ff02::1%device``), including the
    host's own address.
    """
    try:
        with _socket(socket.AF_INET6, socket.IPPROTO_ICMPV6, device) as link:
            target = ("ff02::1", 0, 0, socket.if_nametoindex(device))
            link.sendto(_packet(128, 0, 8), target)
            answers = _replies(link, 129, 0, 0, wait, 8, most=64)
            return {address.partition("%")[0] for address in answers}
    except OSError:
        return set()


def _socket(family: int, protocol: int, device: str) -> socket.socket:
    link = socket.socket(family, socket.SOCK_RAW, protocol)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    return link


def _packet(kind: int, number: int, size: int) -> bytes:
    """Build an echo request: ``kind`` is 8 in ICMP and 128 in ICMPv6; a reply has 0 and 129."""
    head = struct.pack("!BBHHH", kind, 0, 0, os.getpid() & 0xFFFF, number)
    text = head + b"\0" * size
    return text[:2] + struct.pack("!H", _checksum(text)) + text[4:]


def _checksum(text: bytes) -> int:
    total: int = sum(struct.unpack(f"!{(len(text) + 1) // 2}H", text + b"\0" * (len(text) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _replies(
    link: socket.socket, kind: int, skip: int, number: int, wait: float, size: int, most: int = 1
) -> list[str]:
    """Return addresses that answered in time; ``skip`` is the length of the preceding header."""
    result: list[str] = []
    until = time.monotonic() + wait
    while len(result) < most and (left := until - time.monotonic()) > 0:
        link.settimeout(left)
        try:
            text, origin = link.recvfrom(_MOST)
        except socket.timeout:  # noqa: UP041 (two classes in Python 3.10 on other systems)
            break
        head = text[skip : skip + 8]
        if len(head) < 8 or len(text) < skip + 8 + size:
            continue
        got, _, _, mine, sequence = struct.unpack("!BBHHH", head)
        if (got, mine, sequence) == (kind, os.getpid() & 0xFFFF, number):
            result.append(str(origin[0]))
    return result
