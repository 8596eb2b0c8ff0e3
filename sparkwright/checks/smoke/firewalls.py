"""Why others do not reach a port that answers on its host, and the one command that opens it.

A service that listens on its host's own network is met by the rules for input of ufw, firewalld and
nftables; ports that Docker publishes are not.
"""

import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from pathlib import Path

from sparkwright.checks.smoke.outside import Outside
from sparkwright.findings.check import Symptom, load
from sparkwright.findings.finding import Finding
from sparkwright.host.firewall import Firewall

CHECK = "unreachable"
#: Tables of nftables through which connections to the host pass: those of bridges do not count.
_TABLES = ("ip ", "ip6 ", "inet ")
#: A policy or rule that drops what no rule before it has accepted.
_DROP = re.compile(
    r"\bpolicy drop\b|^[ \t]*(?:counter packets \d+ bytes \d+ )?(?:drop|reject)\b", re.MULTILINE
)


def unreachable(
    results: Sequence[Outside], needed: Sequence[int], firewall: Firewall
) -> Finding | None:
    """The finding of a host's ports that did not answer here; None where all did.

    Args:
        results: what was seen from this machine.
        needed: every port that other machines are to reach.
        firewall: the host's.
    """
    ports = sorted({result.closed[1] for result in results if result.closed})
    if not ports:
        return None
    symptom = next(_closing(ports, sorted({*needed, *ports}), firewall), Symptom(CHECK))
    notes = (f"{result.name}: {result.note}" for result in results if result.closed)
    symptom.values["notes"] = "; ".join(notes)
    return load(Path(__file__).with_name("firewalls.yaml"))[CHECK].finding(symptom)


def _closing(ports: list[int], needed: list[int], firewall: Firewall) -> Iterator[Symptom]:
    """The firewalls that let one of the ports' connections not in."""
    lan = _network(firewall.network)
    if firewall.ufw and not all(_in_ufw(port, firewall.ufw) for port in ports):
        yield Symptom(CHECK, "ufw", lan=lan, ports=",".join(map(str, needed)))
    if firewall.firewalld is not None:
        zone, text = _zone(firewall.firewalld, firewall.interface)
        if zone and not all(_in_firewalld(port, text) for port in ports):
            family = "ipv6" if ":" in lan else "ipv4"
            added = " ".join(
                f"--add-rich-rule='rule family={family} source address={lan} "
                f"port port={port} protocol=tcp accept'"
                for port in needed
            )
            yield Symptom(CHECK, "firewalld", zone=zone, rules=added)
    rules = firewall.nft if not firewall.ufw and firewall.firewalld is None else None
    if rules and _drops(rules) and not all(_in_nftables(port, rules) for port in ports):
        family, listed = "ip6" if ":" in lan else "ip", ", ".join(map(str, needed))
        rule = f"{family} saddr {lan} tcp dport {{ {listed} }} accept"
        yield Symptom(CHECK, "nftables", rule=rule)


def _network(text: str | None) -> str:
    """The LAN, for a command that somebody will paste: nothing but a network."""
    try:
        return str(ip_network(text or ""))
    except ValueError:
        return "LAN/24"


def _ranges(text: str, between: str) -> Iterator[tuple[int, int]]:
    for item in re.findall(rf"\d+(?:{between}\d+)?", text):
        first, _, last = item.partition(between)
        yield int(first), int(last or first)


def _has(port: int, text: str, between: str) -> bool:
    return any(first <= port <= last for first, last in _ranges(text, between))


def _in_ufw(port: int, status: str) -> bool:
    """Whether ufw lets a port's connections in, from anywhere or from somewhere."""
    for line in status.splitlines():
        to = re.match(
            r"([\d:,]+)(/tcp)?(?: \(.*?\))*\s+(ALLOW|LIMIT)(?: IN)?\s+(?!FWD|OUT)\S", line
        )
        if to and _has(port, to[1], ":"):
            return True
    return re.search(r"^Default: allow \(incoming\)", status, re.MULTILINE) is not None


def _zone(listed: str, interface: str | None) -> tuple[str | None, str]:
    """The zone that an interface is in, else an active one; its text."""
    active: list[tuple[str, str]] = []
    for block in re.split(r"\n(?=\S)", listed.strip()):
        head = re.match(r"([\w-]+) \((?:default, )?active\)", block)
        if head is None:
            continue
        names = re.search(r"^ +interfaces: *(.*)$", block, re.MULTILINE)
        if names and interface in names[1].split():
            return head[1], block
        active.append((head[1], block))
    return active[0] if active else (None, "")


def _in_firewalld(port: int, zone: str) -> bool:
    if re.search(r"^ +target: ACCEPT$", zone, re.MULTILINE):
        return True
    ports = re.search(r"^ +ports: *(.*)$", zone, re.MULTILINE)
    listed = [part.removesuffix("/tcp") for part in ports[1].split()] if ports else []
    rich = re.findall(r'port port="?([\d-]+)"? protocol="?tcp"? accept', zone)
    return any(_has(port, item, "-") for item in (*listed, *rich) if "/" not in item)


def _drops(ruleset: str) -> bool:
    """Whether nftables drops connections to the host that no rule accepts."""
    tables = [text for text in re.split(r"(?m)^table ", ruleset) if text.startswith(_TABLES)]
    chains = (chain for table in tables for chain in table.split("\tchain "))
    return any("hook input" in chain and _DROP.search(chain) for chain in chains)


def _in_nftables(port: int, ruleset: str) -> bool:
    """Whether a rule of nftables accepts a port's connections, wherever they come from."""
    for line in ruleset.splitlines():
        to = re.search(r"\btcp dport (\{[^}]{0,4096}\}|[\d-]+)", line)
        accepts = line.split(" comment ")[0].rstrip().endswith("accept")
        if to and accepts and _has(port, to[1], "-"):
            return True
    return False
