"""Why others do not reach a port that answers on its host, and the one command that opens it.

A service that listens on its host's own network is met by the rules for input of ufw, firewalld and
nftables; ports that Docker publishes are not.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path

from sparkwright.checks.smoke.outside import Outside
from sparkwright.findings.check import Symptom, load
from sparkwright.findings.finding import Finding
from sparkwright.host.firewall import Firewall

CHECK = "unreachable"
_FAMILIES = ("ip", "ip6", "inet")
#: Family, table and chain -> its lines.
_Chains = dict[tuple[str, str, str], list[str]]
#: What a host calls its tables and chains becomes part of a command that somebody will paste.
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


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
            rules = " ".join(
                f"--add-rich-rule='rule family={family} source address={lan} "
                f"port port={port} protocol=tcp accept'"
                for port in needed
            )
            yield Symptom(CHECK, "firewalld", zone=zone, rules=rules)
    if firewall.nft and not firewall.ufw and firewall.firewalld is None:
        shut = [chain for chain in _input_chains(firewall.nft) if not all(map(chain.admits, ports))]
        if shut:
            opened = (chain.opened(lan, needed, iptables=firewall.iptables) for chain in shut)
            names = ", ".join(chain.name for chain in shut)
            yield Symptom(CHECK, "nftables", names=names, command=" && ".join(opened))


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


@dataclass(frozen=True)
class _Chain:
    """A chain of nftables that input passes; ``inner`` are the rules of chains that it jumps to."""

    family: str
    table: str
    chain: str
    lines: tuple[str, ...]
    inner: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.family} {self.table} {self.chain}"

    @property
    def closes(self) -> bool:
        """Whether what no rule lets in is dropped."""
        last = self.lines[-1] if self.lines else ""
        return any(re.search(r"\bpolicy drop\b", line) for line in self.lines[:3]) or bool(
            re.match(r"(counter packets \d+ bytes \d+ )?(drop|reject)\b", last)
        )

    def admits(self, port: int) -> bool:
        """Whether a rule lets a port's connections in, wherever they come from."""
        if not self.closes:
            return True
        for line in (*self.lines, *self.inner):
            to = re.search(r"\btcp dport (\{[^}]*\}|[\d-]+)", line)
            accepts = line.split(" comment ")[0].rstrip().endswith("accept")
            if to and accepts and _has(port, to[1], "-"):
                return True
        return False

    def opened(self, lan: str, ports: list[int], *, iptables: bool) -> str:
        listed = ", ".join(map(str, ports))
        six = ":" in lan
        if iptables and (self.table, self.chain) == ("filter", "INPUT"):
            return (
                f"sudo {'ip6tables' if six else 'iptables'} -I INPUT -p tcp -s {lan} -m multiport "
                f"--dports {listed.replace(' ', '')} -j ACCEPT"
            )
        family = "ip6" if six else "ip"
        rule = f"{family} saddr {lan} tcp dport {{ {listed} }} accept"
        return f"sudo nft insert rule {self.name} '{rule}'"


def _input_chains(ruleset: str) -> Iterator[_Chain]:
    """The chains at the hook ``input`` of IP's families, with the rules of those that they jump to.

    Bridges and ARP have hooks of that name, too, which are about other packets
    (ovh/debian-cis#366).
    """
    chains = _chains(ruleset)
    for (family, table, chain), lines in chains.items():
        named = all(map(_NAME.fullmatch, (table, chain)))
        if named and family in _FAMILIES and "hook input" in "".join(lines[:1]):
            further = [
                chains.get((family, table, jump), [])
                for jump in _jumps(chains, lines, family, table)
            ]
            inner = tuple(line for some in further for line in some)
            yield _Chain(family, table, chain, tuple(lines), inner)


def _jumps(chains: _Chains, lines: list[str], family: str, table: str) -> list[str]:
    """The chains that rules lead to, also by others."""
    result: dict[str, None] = {}
    left = list(lines)
    while left:
        for name in re.findall(r"\b(?:jump|goto) ([\w.-]+)", left.pop()):
            if name not in result:
                result[name] = None
                left += chains.get((family, table, name), [])
    return list(result)


def _chains(ruleset: str) -> _Chains:
    """Every chain's lines, by family, table and name."""
    result: _Chains = {}
    table: list[str] = []
    lines: list[str] | None = None
    for line in map(str.strip, ruleset.splitlines()):
        parts = line.split()
        if parts[:1] == ["table"]:
            table = parts
        elif parts[:1] == ["chain"] and len(parts) > 1 and len(table) > 2:
            lines = result.setdefault((table[1], table[2], parts[1]), [])
        elif line == "}":
            lines = None
        elif lines is not None and line:
            lines.append(line)
    return result
