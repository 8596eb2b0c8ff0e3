"""The container: whose code runs in it, and who reaches it."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwright.checks.configuration.facts import Context
from sparkwright.config.settings import is_loopback
from sparkwright.findings.check import Symptom, check
from sparkwright.findings.finding import Severity

_KEY = "arguments.trust_remote_code"


@check("remote-code")
def _remote_code(context: Context) -> Iterator[Symptom]:
    if not context.arguments.get("trust_remote_code"):
        return
    pins = context.plan.pins
    if not pins.locked:
        yield Symptom(
            "trust_remote_code without a lock: whatever the repository holds at the next deploy",
            key=_KEY,
            remedy="'sparkwright lock INVENTORY', and commit the file; or leave "
            "trust_remote_code out",
        )
        return
    if pins.python is None:
        return  # judged once more when the lock's files are known
    models = [one for one in (context.body, context.drafter) if one]
    found = {one.name: pins.python.get(one.name, ()) for one in models}
    if not any(found.values()):
        yield Symptom(
            "no locked repository of it has Python files",
            key=_KEY,
            remedy="leave trust_remote_code out",
            reason="it is not needed, and would let a later revision run code",
            severity=Severity.WARNING,
        )
    for model in models:
        unread = [path for path in found[model.name] if path not in model.code]
        if unread:
            yield Symptom(
                f"{model.repository} has Python files that its catalog entry does not name: "
                f"{', '.join(unread)}",
                key=_KEY,
                remedy=f"read them at the locked commit, then name them: 'kind: model', 'name: "
                f"{model.name}', 'extends: true', 'code: [...]' in a catalog of yours; or leave "
                "trust_remote_code out",
            )


@check("strict-without-proxy")
def _strict(context: Context) -> Iterator[Symptom]:
    service = context.service
    if service.container.strict and not service.proxy and not is_loopback(service.bind):
        yield Symptom(
            f"hardening: strict without a proxy, and Docker publishes the port at {service.bind}",
            key="hardening",
        )


@check("low-port")
def _low_port(context: Context) -> Iterator[Symptom]:
    service = context.service
    if service.port < 1024 and not service.container.strict:
        yield Symptom(
            f"port {service.port} for vLLM itself, whose container may open none below 1024",
            key="port",
        )
