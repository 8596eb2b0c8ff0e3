"""Firewall of a service: its unit runs `close RELEASE` and `open RELEASE`.

A rank's engine listens on its host's network, and a service with a bridge on its own network.
Engines also open ports of their own choice, and require no key at these ports: vLLM loads any data
sent to the head's port, and each rank has about fifteen more ports. Every host with Docker has
iptables. The rules are made before the engine starts, and removed after its end. `restore
SERVICES_ROOT`, which the watch calls, restores missing rules while a service runs, as after `nft
flush ruleset`.

The rules are in the mangle table: packets dropped there reach no rule of Docker, ufw or another
program that would accept them.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from sparkwright.host.lib import documents, homes, ranks, systemd
from sparkwright.host.lib.processes import run
from sparkwright.host.service import Service, records

#: Programs that set rules: ip6tables is used only if the kernel has IPv6.
PROGRAMS = ("iptables", "ip6tables") if documents.text("/proc/net/if_inet6") else ("iptables",)
#: Arguments of iptables: a match, or a rule of a chain.
Rule = tuple[str, ...]
#: A built-in chain, such as INPUT; the match of packets for the service's chain; and that chain's
#: rules.
Chain = tuple[str, Sequence[Rule], Sequence[Rule]]
#: File with the range of the kernel's ephemeral ports.
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
#: Seconds for another program to release the lock of iptables; the start of a unit may take 90 s.
_SECONDS = 30
_DROP: Rule = ("-j", "DROP")
#: Only root's processes may open connections; the engine runs as root in its container.
#: Packets of a socket without an owner, such as the kernel's, are dropped, too.
_ROOT: list[Rule] = [("-m", "owner", "--uid-owner", "0", "-j", "RETURN"), _DROP]


def chains(service: Service, program: str) -> list[Chain]:
    """Return a service's chains; empty for a service whose container has no network."""
    if service.rank:
        return _of_rank(service.rank, program)
    return _of_bridge(service.bridge, service.outgoing, program) if service.bridge else []


def _of_rank(rank: ranks.RankConfig, program: str) -> list[Chain]:
    """Let only other ranks and root reach a rank's engine. Ranks have IPv4 addresses only."""
    gathering: Rule = ("-p", "tcp", "--syn", "--dport", f"{rank.port}:{rank.port + 1}")
    # OUTPUT has already checked packets on lo, since it can match their owner.
    local: Rule = ("-i", "lo", "-j", "RETURN")
    if program == "ip6tables":
        return [("INPUT", [gathering], [local, _DROP]), ("OUTPUT", [gathering], _ROOT)]
    others = [("-s", address, "-j", "RETURN") for address in rank.addresses]
    begun = [("-d", address, "-p", "tcp", "--syn") for address in rank.addresses]
    chosen = ("--dport", ":".join((documents.text(_RANGE) or "32768 60999").split()))
    # On the ranks' own rails, neighbours have no reason to connect at all.
    mine = begun[rank.number] if rank.shape else (*begun[rank.number], *chosen)
    return [
        ("INPUT", [gathering, mine], [local, *others, _DROP]),
        ("OUTPUT", [gathering, *((*match, *chosen) for match in begun)], _ROOT),
    ]


def _of_bridge(bridge: str, outgoing: bool, program: str) -> list[Chain]:
    """Neighbours and local users reach only the port that Docker publishes, through a redirect or
    as root. Neighbours can't reach a port that is published on loopback (Docker before 28 also
    redirects these ports). The container reaches only this host's nameserver, and opens no
    connections without ``outgoing``.
    """
    begun: Rule = ("-m", "conntrack", "!", "--ctstate", "ESTABLISHED,RELATED,DNAT")
    loopback = "::1" if program == "ip6tables" else "127.0.0.0/8"
    into, out = ("-o", bridge, "!", "-i", bridge), ("-i", bridge, "!", "-o", bridge)
    redirected: Rule = ("-m", "conntrack", "--ctorigdst", loopback, *_DROP)
    names = [("-p", kind, "--dport", "53", "-j", "RETURN") for kind in ("udp", "tcp")]
    closed: Rule = (*begun, *_DROP)
    return [
        ("FORWARD", [into] if outgoing else [into, out], [closed, redirected]),
        ("OUTPUT", [("-o", bridge, *begun)], _ROOT),
        ("INPUT", [("-i", bridge)], [*names, closed] if outgoing else [closed]),
    ]


def write(service: Service, *, closed: bool) -> None:
    """Make a service's rules, or remove them with the rules of earlier releases. The engine is not
    started without its rules.

    Raises:
        SystemExit: iptables refuses the rules.
    """
    for program in PROGRAMS:
        _write(program, service.name, chains(service, program) if closed else [])


def restore(services_root: str) -> None:
    """Restore missing rules of running services, and print the services' names.

    Raises:
        SystemExit: iptables refuses the rules of some services; the rules of all other services are
            made.
    """
    refusals = []
    for name, service in records(homes.services(services_root)).items():
        runs = systemd.unit(service.unit, timeout=10).get("ActiveState") == "active"
        if runs and not all(complete(service, program) for program in PROGRAMS):
            try:
                write(service, closed=True)
            except SystemExit as refusal:
                refusals.append(str(refusal))
            else:
                print(f"{name}: the iptables rules were missing, and are restored", flush=True)
    if refusals:
        raise SystemExit("\n".join(refusals))


def complete(service: Service, program: str) -> bool:
    """Return whether a service has all its rules."""
    rules = [line for line in _listed(program) if line.startswith("-A")]
    wanted = sum(len(matches) + len(own) for _, matches, own in chains(service, program))
    return sum(_prefix(service.name) in rule for rule in rules) == wanted


def _write(program: str, service: str, made: Sequence[Chain]) -> None:
    """Replace a service's chains in one transaction."""
    lines, prefix = _listed(program), _prefix(service)
    former = [line[1:].split()[0] for line in lines if line.startswith(f":{prefix}")]
    names = [f"{prefix}-{hook}" for hook, _, _ in made]
    text = ["*mangle", *(f":{name} -" for name in {*former, *names})]
    text += [f"-D{line[2:]}" for line in lines if f" -j {prefix}" in line]
    for name, (hook, matches, rules) in zip(names, made, strict=True):
        text += [" ".join(("-A", name, *rule)) for rule in rules]
        text += [" ".join(("-I", hook, *match, "-j", name)) for match in matches]
    text += [*(f"-X {name}" for name in former if name not in names), "COMMIT", ""]
    restore = (f"{program}-restore", "\n".join(text), str(_SECONDS))
    piped = 'printf %s "$1" | "$0" --noflush --wait "$2"'
    outcome = run("sh", "-c", piped, *restore, timeout=_SECONDS + 10)
    if not outcome.ok:
        reason = " ".join(outcome.err.split())[:300]
        raise SystemExit(
            f"{program} refuses the rules that protect the ports of {service}: {reason}"
        )


def _listed(program: str) -> list[str]:
    return run(f"{program}-save", "-t", "mangle", timeout=20).out.splitlines()


def _prefix(service: str) -> str:
    """Return the prefix of a service's chains. A name in iptables has at most 28 characters."""
    return f"SPARKWRIGHT-{hashlib.sha256(service.encode()).hexdigest()[:8].upper()}"


def main(action: str, path: str) -> int:
    """Carry out an action for one release's service, or for all services of a host."""
    if action == "restore":
        restore(path)
    elif (service := documents.record(Service, path)) is None:
        raise SystemExit(f"{path} can't be read")
    else:
        write(service, closed=action == "close")
    return 0
