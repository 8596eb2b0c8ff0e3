"""The container: whose code runs in it, and who reaches it."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.configuration.rule import Context, Match, Rule
from sparkwright.config.settings import is_loopback
from sparkwright.findings.finding import Severity

_KEY = "arguments.trust_remote_code"


def _remote_code(context: Context) -> Iterator[Match]:
    if not context.arguments.get("trust_remote_code"):
        return
    pins = context.plan.pins
    if not pins.locked:
        yield Match(
            _KEY,
            "trust_remote_code without a lock: whatever the repository holds at the next deploy",
            "'sparkwright lock INVENTORY', and commit the file; or leave trust_remote_code out",
        )
        return
    if pins.python is None:
        return  # judged once more when the lock's files are known
    models = [one for one in (context.body, context.drafter) if one]
    found = {one.name: pins.python.get(one.name, ()) for one in models}
    if not any(found.values()):
        yield Match(
            _KEY,
            "no locked repository of it has Python files",
            "leave trust_remote_code out",
            reason="it is not needed, and would let a later revision run code",
            severity=Severity.WARNING,
        )
    for model in models:
        unread = [path for path in found[model.name] if path not in model.code]
        if unread:
            yield Match(
                _KEY,
                f"{model.repository} has Python files that its catalog entry does not name: "
                f"{', '.join(unread)}",
                f"read them at the locked commit, then name them: 'kind: model', 'name: "
                f"{model.name}', 'extends: true', 'code: [...]' in a catalog of yours; or leave "
                "trust_remote_code out",
            )


def _strict(context: Context) -> Iterator[Match]:
    service = context.service
    if service.container.strict and not service.proxy and not is_loopback(service.bind):
        yield Match(
            "hardening",
            f"hardening: strict without a proxy, and Docker publishes the port at {service.bind}",
            "proxy: True, or bind: 127.0.0.1",
        )


def _low_port(context: Context) -> Iterator[Match]:
    service = context.service
    if service.port < 1024 and not service.container.strict:
        yield Match(
            "port",
            f"port {service.port} for vLLM itself, whose container may open none below 1024",
            "proxy: True, which takes the port and has vLLM listen above it",
        )


RULES = (
    Rule(
        "remote-code", Severity.ERROR, "code of a model's repository that nobody has read",
        "trust_remote_code runs Python files of the repository within the container",
        "sparkwright; transformers, 'Custom models'", _remote_code,
    ),
    Rule(
        "strict-without-proxy", Severity.ERROR, "a container's network open to the LAN",
        "Docker's rules for published ports come before those of a firewall such as ufw",
        "Docker's documentation, 'Packet filtering and firewalls'", _strict,
    ),
    Rule(
        "low-port", Severity.ERROR, "a port that takes a capability to open",
        "a container is given no capability, and the kernel keeps ports below 1024 for those "
        "who have CAP_NET_BIND_SERVICE", "ip(7), ip_unprivileged_port_start", _low_port,
    ),
)  # fmt: skip
