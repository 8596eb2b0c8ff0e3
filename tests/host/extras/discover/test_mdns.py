"""Two boxes on a cable of their own: what one announces by mDNS, the other finds."""

import os
import subprocess
import sys

import pytest

from sparkwright.extras.discover.names import Candidate

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces")

#: A network namespace with one end of a cable; the other end is that of a second one, within.
_NETWORK = """
unshare --net sleep 60 & box=$!
trap 'kill $box $announcing' EXIT
until [ "$(readlink /proc/$box/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.05; done
ip link add laptop type veth peer name box netns $box
ip address add 10.99.0.1/24 dev laptop && ip link set laptop up && ip link set lo up
nsenter -t $box -n sh -c 'ip address add 10.99.0.2/24 dev box && ip link set box up'
nsenter -t $box -n "$1" -c "$3" >&2 & announcing=$!
"$1" -c "$2"
"""
#: The box: SSH, as avahi announces it; and one that would have a public address dialled.
_BOX = """
import socket, time, zeroconf
network = zeroconf.Zeroconf(interfaces=["10.99.0.2"])
for name, address in (("elsewhere", "8.8.8.8"), ("spark-7", "10.99.0.2")):
    network.register_service(zeroconf.ServiceInfo(
        "_ssh._tcp.local.", f"{name}._ssh._tcp.local.", port=22, server=f"{name}.local.",
        addresses=[socket.inet_aton(address)],
    ))
time.sleep(60)
"""
_LAPTOP = """
from sparkwright.extras.discover.names import announced
for _ in range(10):
    found = announced(2)
    if any(one.name == "spark-7.local" for one in found):
        break
print(found)
"""


def test_a_box_that_announces_ssh_is_found() -> None:
    pytest.importorskip("zeroconf", reason="make setup installs zeroconf")
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", _NETWORK, "sh", sys.executable, _LAPTOP, _BOX],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.stdout.strip() == repr([Candidate("spark-7.local", ("10.99.0.2",), "mDNS")]), (
        done.stderr
    )
