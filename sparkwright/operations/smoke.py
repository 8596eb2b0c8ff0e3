"""Smoke tests of a host's services: a service without real answers fails the host."""

from collections.abc import Callable, Sequence
from ipaddress import ip_address

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.checks.smoke import outside
from sparkwright.checks.smoke.outside import Entrance
from sparkwright.checks.smoke.result import Smoke
from sparkwright.config.settings import is_loopback
from sparkwright.facts.answers import invalid, of_each
from sparkwright.facts.asking import addresses, ask
from sparkwright.facts.memory import memory
from sparkwright.findings.finding import Finding
from sparkwright.host.service import SmokeRequest
from sparkwright.host.smoke import check as program
from sparkwright.host.smoke.check import SmokeAnswer
from sparkwright.operations.lib.changing import Commands, look, operation, tell

_LABEL = "sparkwright-check"


@operation()
def answers(
    services: Sequence[SmokeRequest],
    *,
    entrances: Sequence[Entrance] = (),
    judged: Callable[[str, Smoke], None] | None = None,
    noticed: Callable[[Finding], None] | None = None,
) -> Commands:
    """Check each service for health, its names, the key and a real generation. The host is not
    changed.

    The host itself sends the requests, within each service's deadlines. A failure shows the
    service's last journal lines. Then this machine sends requests without the key, as a neighbour
    would.

    Args:
        entrances: ports that must refuse every request without the key.
        judged: function called with the result of each service, by name.
        noticed: function called with a fault that does not fail the host: ports that answer the
            host but not this machine.

    **Example:**

    .. code:: python

        from sparkwright.operations import SmokeRequest, smoke

        chat = SmokeRequest(
            name="chat", unit="chat.service", address="127.0.0.1", port=8000,
            secrets="/etc/chat.env", served_names=("chat",), engine="vllm",
            boot_seconds=600, first_answer_seconds=60,
        )
        smoke.answers(services=[chat])
    """

    def inspect(host: Host) -> Sequence[str]:
        inside = _from_inside(host, services) if services else {}
        seen = {}
        looked = outside.look(entrances, _address(host), _ipv4(host))
        for entry in looked:
            seen[entry.name] = entry.result
            if entry.result is None:
                host.log(f"{entry.name} was not tested from outside: {entry.note}")
        problems: list[str] = []
        for name in dict.fromkeys((*inside, *seen)):
            answer, last = inside.get(name, SmokeAnswer(())), seen.get(name)
            result = Smoke.of([*answer.checks, *([last] if last else [])])
            if judged and name in inside:
                judged(name, result)
            if result.failures:
                subject = f"service {name}" if name in inside else name
                problems += [
                    f"{subject} fails its smoke test: {failure}" for failure in result.failures
                ]
                problems += [f"    journal: {line}" for line in answer.journal]
        if not problems and (closed := outside.unreachable_ports(host.name, looked)):
            tell(host, [closed])
            if noticed:
                noticed(closed)
        return problems

    if not services and not entrances:
        ctx_host.get().noop("this host has no service")
        return
    yield from look(inspect)


def _address(host: Host) -> str | None:
    """Return the address at which this machine reaches the host directly: not through a jump host
    or a tunnel.
    """
    connection = addresses(host)
    if connection is None or is_loopback(connection[1]):
        return None
    # A link-local address (fe80::...) has no interface name here.
    link_local = ip_address(connection[1].partition("%")[0]).is_link_local
    return _ipv4(host) if link_local else connection[1]


def _ipv4(host: Host) -> str | None:
    """The host's IPv4 address on the interface of this machine's connection, as observed."""
    connection, seen = addresses(host), memory(host).observation
    if connection is None or seen is None:
        return None
    came = connection[1].partition("%")[0]
    every = [item for own in seen.addresses.values() if came in own for item in own]
    return next((item for item in every if ":" not in item), None)


def _from_inside(host: Host, services: Sequence[SmokeRequest]) -> dict[str, SmokeAnswer]:
    deadlines = [service.boot_seconds + 4 * service.first_answer_seconds for service in services]
    timeout = max(deadlines, default=0) + 60
    smoke_answers = ask(
        host, program, tuple(services), dict[str, SmokeAnswer], timeout=timeout, secrets=False
    )
    of_each(_LABEL, [service.name for service in services], smoke_answers)
    for name, answer in smoke_answers.items():
        if not answer.checks:
            invalid(_LABEL, f"service {name} was not checked")
    return smoke_answers
