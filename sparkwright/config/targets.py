"""Hosts and services that a command line names.

A name is a host, a group or a pattern such as ``spark-*``, any of these followed by ``/SERVICE``,
or a service, which selects every host with this service.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkwright.config.inventory import HostInput, matching
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, Problems, suggest

_MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class Targets:
    """Hosts and services that names select.

    Attributes:
        limit: names, groups and patterns of hosts, as for pyinfra's ``--limit``.
        services: host -> its selected services; hosts without an entry have all services selected.
    """

    limit: tuple[str, ...]
    services: Mapping[str, tuple[str, ...]]


def targets_of(
    names: Sequence[str], hosts: Sequence[HostInput], *, services: bool, planned: bool = True
) -> Targets:
    """Resolve names by the inventory and its group_data.

    Args:
        services: whether names may select services; otherwise, they select whole hosts only.
        planned: whether the hosts' services are known. If group_data can't be read, services are
            unknown and are looked up on the hosts.

    Raises:
        UserError: names are unknown; the message lists them.
    """
    problems = Problems()
    limit: dict[str, None] = {}
    chosen: dict[str, dict[str, None]] = {}
    whole: set[str] = set()
    for name in names:
        if named := matching(hosts, name):
            whole |= named
            limit[name] = None
            continue
        part, _, service = name.rpartition("/")
        within = [host for host in hosts if not part or host.name in matching(hosts, part)]
        having = [host.name for host in within if not planned or service in services_of(host)]
        if services and having:
            for host in having:
                chosen.setdefault(host, {})[service] = None
        else:
            problems.append(_mistake(name, hosts, within, having, services=services))
    problems.stop()
    limit |= dict.fromkeys(host for host in chosen if host not in whole)
    of_hosts = {host: tuple(names) for host, names in chosen.items() if host not in whole}
    return Targets(tuple(limit), of_hosts)


def services_of(host: HostInput) -> Iterator[str]:
    """Yield the names of the services in a host's settings."""
    services = host.data.get("services")
    yield from map(str, services if isinstance(services, dict) else ())


def _mistake(
    name: str, hosts: Sequence[HostInput], within: Sequence[HostInput], having: Sequence[str], *,
    services: bool,
) -> Finding:  # fmt: skip
    part, _, service = name.rpartition("/")
    where = f"command line: {name}"
    if having:
        return _MESSAGES.mistake("whole-hosts", where, hosts=" ".join(having))
    names = sorted({each for host in within for each in services_of(host)})
    if part and within:
        near = suggest(service, names)
        return _MESSAGES.mistake("no-service-there", where, part=part, name=service, near=near)
    groups = sorted({group for host in hosts for group in host.groups})
    near = suggest(part or name, [*(host.name for host in hosts), *groups, *names * services])
    message = "no-target" if services else "neither-host-nor-group"
    return _MESSAGES.mistake(message, where, near=near)
