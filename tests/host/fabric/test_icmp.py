"""Echo requests of a given size, unfragmented: the `ping -M do -s 8972` of the fabric's rails."""

import subprocess
import sys

import pytest

_LOOK = "from sparkwright.host.lib import icmp; print(icmp.{})"


def _output(mtu: int, call: str) -> str:
    """Output of a call in a network namespace of its own, whose loopback has this MTU."""
    ready = f"ip link set lo mtu {mtu} up && exec {sys.executable} -c '{_LOOK.format(call)}'"
    arguments = ["unshare", "--net", "--map-root-user", "sh", "-c", ready]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("mtu", "size", "message"),
    [
        (9000, 8972, ""),
        (9000, 8973, "message too long for lo"),
        (1500, 8972, "message too long for lo"),
        (1500, 1472, ""),
    ],
)
def test_a_packet_that_fills_the_mtu_answers_and_no_larger_one(
    mtu: int, size: int, message: str
) -> None:
    assert _output(mtu, f'echo("127.0.0.1", "lo", {size})') == message


def test_nobody_there_is_an_answer_too() -> None:
    assert _output(1500, 'echo("192.0.2.1", "lo", tries=1, wait=0.2)') != ""
    assert _output(1500, 'echo("127.0.0.1", "none", tries=1)') == "No such device"


def test_all_nodes_of_a_device_without_ipv6_are_none() -> None:
    assert _output(1500, 'all_nodes("none")') == "set()"
