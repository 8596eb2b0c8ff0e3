"""The firewall rule that closes a published port, and the command that opens it."""

import shlex

import pytest

from sparkwright.checks.smoke.firewalls import unreachable
from sparkwright.checks.smoke.outside import Outside
from sparkwright.findings.finding import Severity
from sparkwright.host.firewall import Firewall
from tests.tables import Tables
from tests.unit.builders import ROOT

cases = Tables(__file__)

FIREWALLS = ROOT / "tests/fixtures/firewalls"
#: chaifeng/ufw-docker#21
UFW = (FIREWALLS / "ufw.txt").read_text()
#: firewalld/firewalld#641, and a zone that is not active from firewalld/firewalld#1359
FIREWALLD = (FIREWALLS / "firewalld.txt").read_text()
#: evilsocket/opensnitch#1423, its first table
NFT = (FIREWALLS / "nft.txt").read_text()
LAN = {"interface": "br0", "network": "192.168.1.0/24"}
SHUT = [Outside("qwen36", None, "192.168.1.11:8000 does not answer here: timed out",
                ("192.168.1.11", 8000))]  # fmt: skip


def _remedy(**seen: object) -> tuple[str, str]:
    result = unreachable(SHUT, [8000, 18650], Firewall(**LAN, **seen))  # type: ignore[arg-type]
    assert result is not None
    assert result.severity is Severity.WARNING
    assert "192.168.1.11:8000 does not answer here" in result.observed
    return result.observed, result.remedy


def test_all_that_answers_is_no_finding() -> None:
    assert unreachable([Outside("qwen36", None, "a tunnel")], [8000], Firewall(ufw=UFW)) is None


def test_ufw() -> None:
    observed, remedy = _remedy(ufw=UFW, nft=NFT)
    assert "ufw is active" in observed
    assert remedy == "sudo ufw allow proto tcp from 192.168.1.0/24 to any port 8000,18650"


@cases("rule")
def test_ufw_that_allows_it_is_not_blamed(rule: str) -> None:
    assert "nothing in the rules" in _remedy(ufw=f"{UFW}{rule}\n")[0]
    assert "ufw is active" in _remedy(ufw=f"{UFW}{rule.replace('ALLOW', 'DENY')}\n".replace(
        "LIMIT", "DENY"))[0]  # fmt: skip


def test_a_rule_for_forwarding_lets_nothing_in() -> None:
    """They are for Docker's published ports; ours are on the host's own network."""
    shut = [Outside("web", None, "no answer", ("192.168.1.11", 443))]
    result = unreachable(shut, [443], Firewall(ufw=UFW, **LAN))
    assert result is not None
    assert "ufw is active" in result.observed


def test_firewalld() -> None:
    observed, remedy = _remedy(firewalld=FIREWALLD, nft=NFT)
    assert "firewalld's zone home" in observed
    assert remedy.startswith("sudo firewall-cmd --permanent --zone=home --add-rich-rule=")
    assert remedy.endswith("&& sudo firewall-cmd --reload")
    parts = shlex.split(remedy)
    rule = "rule family=ipv4 source address=192.168.1.0/24 port port={} protocol=tcp accept"
    assert f"--add-rich-rule={rule.format(8000)}" in parts
    assert f"--add-rich-rule={rule.format(18650)}" in parts
    done = FIREWALLD.rstrip() + "\n\t" + rule.format(8000) + "\n"
    assert "nothing in the rules" in _remedy(firewalld=done)[0]
    more = FIREWALLD.replace("2001-2003/tcp", "7000-9000/tcp")
    assert "nothing in the rules" in _remedy(firewalld=more)[0]
    assert "firewalld's zone" in _remedy(firewalld=more.replace("9000/tcp", "9000/udp"))[0]
    trusted = FIREWALLD.replace("target: default", "target: ACCEPT")
    assert "nothing in the rules" in _remedy(firewalld=trusted)[0]


def test_nftables() -> None:
    observed, remedy = _remedy(nft=NFT)
    assert "nftables drops what no rule accepts" in observed
    assert remedy.endswith("ip saddr 192.168.1.0/24 tcp dport { 8000, 18650 } accept")


@pytest.mark.parametrize("ports", ["8000", "{ 22, 8000 }", "7000-9000"])
def test_nftables_that_accept_it_are_not_blamed(ports: str) -> None:
    opened = NFT.replace("tcp dport 22", f"tcp dport {ports}")
    assert "nothing in the rules" in _remedy(nft=opened)[0]


def test_a_policy_on_a_line_of_its_own() -> None:
    """Which ovh/debian-cis#366 saw missed; its bridges too, which filter other packets."""
    apart = NFT.replace("; policy drop;\n\t\tct", ";\n\t\tpolicy drop;\n\t\tct")
    assert "nftables drops" in _remedy(nft=apart)[0]
    assert "nothing in the rules" in _remedy(nft=NFT.replace("table inet", "table bridge"))[0]
    assert "nothing in the rules" in _remedy(nft=NFT.replace("policy drop", "policy accept"))[0]


def test_nothing_on_the_host_closes_it() -> None:
    observed, remedy = _remedy()
    assert "nothing in the rules of ufw, firewalld or nftables" in observed
    assert "VLAN" in remedy


def test_ipv6() -> None:
    result = unreachable(SHUT, [8000], Firewall(nft=NFT, network="fd00:1::/64"))
    assert result is not None
    assert "ip6 saddr fd00:1::/64 tcp dport { 8000 } accept" in result.remedy


@pytest.mark.parametrize("verb", ["jump", "goto"])
def test_what_a_chain_leads_to_counts(verb: str) -> None:
    """As in itdoginfo/podkop#284, where each interface has a chain of its own."""
    led = NFT.replace("tcp dport 22 accept", f'iifname "br0" {verb} lan')
    inner = "\n\tchain {} {{\n\t\t{}\n\t}}\n}}\n"
    opened = led.rstrip("}\n") + "\n\t}\n" + inner.format("lan", "tcp dport 8000 accept")
    assert "nothing in the rules" in _remedy(nft=opened)[0]
    further = opened.rstrip("}\n").replace("tcp dport 8000 accept", "jump deep")
    further += "\n\t}\n" + inner.format("deep", "tcp dport { 8000-8010 } accept")
    assert "nothing in the rules" in _remedy(nft=further)[0]
