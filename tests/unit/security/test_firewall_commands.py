"""A hostile host says what its firewall is, and somebody pastes the command that opens it."""

import pytest

from sparkwright.checks.smoke.firewalls import unreachable
from sparkwright.checks.smoke.outside import Outside
from sparkwright.host.firewall import Firewall
from tests.unit.checks.smoke.test_firewalls import FIREWALLD, NFT, UFW

SHUT = [Outside("qwen36", None, "no answer", ("192.168.1.11", 8000))]
EVIL = (
    "$(poweroff)",
    "`poweroff`",
    "x;poweroff",
    "x|poweroff",
    "x&&poweroff",
    "x'poweroff'",
    'x"poweroff"',
)


def _remedy(**seen: object) -> str:
    result = unreachable(SHUT, [8000], Firewall(**seen))  # type: ignore[arg-type]
    assert result is not None
    return result.remedy


@pytest.mark.parametrize("evil", EVIL)
def test_no_name_of_a_hosts_gets_into_a_command(evil: str) -> None:
    for before, after in (
        ("inet filter", f"inet {evil}"),
        ("inet filter", f"{evil} x"),
        ("chain input", f"chain {evil}"),
    ):
        assert "poweroff" not in _remedy(nft=NFT.replace(before, after), network="192.168.1.0/24")
    zone = FIREWALLD.replace("home (active)", f"{evil} (active)")
    assert "poweroff" not in _remedy(firewalld=zone, interface="br0", network="192.168.1.0/24")
    for firewall in ({"ufw": UFW}, {"firewalld": FIREWALLD}, {"nft": NFT}):
        assert "poweroff" not in _remedy(**firewall, interface=evil, network=evil)
        assert "poweroff" not in _remedy(**firewall, network=f"192.168.1.0/24 {evil}")


def test_a_listing_that_makes_no_sense_ends_nothing() -> None:
    for text in ("}", "table\n", "table inet\nchain\n}", "chain x {\nhook input\n}", "\x00" * 100):
        assert "VLAN" in _remedy(nft=text, ufw=None)
        assert _remedy(firewalld=text)
