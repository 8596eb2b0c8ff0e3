"""Starting a switch on a host, and following it to its end."""

from __future__ import annotations

import getpass
import json
import secrets
import socket
from dataclasses import dataclass
from typing import Any

from pyinfra.api.host import Host

from roles import remote, site
from roles.serving.state import changes, former, restarts, secrets_text
from sparkwright.config.templates import template
from sparkwright.facts.programs import laid_out
from sparkwright.host import jobs as jobs_program
from sparkwright.host import switch as transaction
from sparkwright.plan.release import Release
from sparkwright.preflight.ports import unmanaged_containers
from sparkwright.proxy.proxies import leave_and_return
from sparkwright.report.run import Outcome
from sparkwright.smoke import smoke_of, smoke_request

UNIT = "sparkwright-switch"
#: Requests after a start, before a service counts as ready: the first ones compile kernels.
WARM_UPS = 2
#: Seconds between two looks at a switch.
_EVERY = 5
_PROGRAM = (
    'import sys; sys.path.insert(0, "{}"); from sparkwright.host import switch; '
    "sys.exit(switch.main(sys.argv[1:]))"
)
_WORDS = {
    "writing": "writing the release",
    "draining": "letting running requests end",
    "stopping": "stopping",
    "switching": "switching",
    "starting": "starting",
    "proving": "waiting for real answers",
    "reverting": "going back",
}


@dataclass(frozen=True)
class Ended:
    """How a switch ended: ``good``, ``reverted`` or ``failed``, and why."""

    result: str
    reasons: tuple[str, ...]
    down_seconds: float
    checks: dict[str, Any]


class Broken(remote.HostError):
    """A switch has no end, and no job works on it."""


def place(run: site.HostRun) -> str:
    """Where a host keeps what a switch needs, and how far it is."""
    return f"{run.plan.settings.services_root}/state/switch"


def to_plan(run: site.HostRun) -> list[dict[str, Any]]:
    """Services of a request: everything that is not as planned."""
    services = []
    for release in run.wanted.releases:
        found = changes(run, release)
        if found:
            back = former(run.seen.services[release.service.name], release)
            one = _service(run, release, back=back, why=found, restart=restarts(found))
            services.append({**one, "files": _files(run, release)})
    return services


def to_release(run: site.HostRun, name: str, to: str, back: str, why: str) -> dict[str, Any]:
    """A service of a request that goes to a release which the host still has."""
    release = next(one for one in run.wanted.releases if one.service.name == name)
    one = _service(run, release, back=back, why=[why], restart=True)
    return {**one, "to": to, "image": None, "files": {}}


def _service(
    run: site.HostRun, release: Release, *, back: str | None, why: list[str], restart: bool
) -> dict[str, Any]:
    return {
        "name": release.service.name,
        "home": release.home,
        "unit": release.service.unit,
        "unit_path": release.unit_path,
        "to": release.id,
        "from": back,
        "image": release.image,
        "secrets": release.secrets,
        "why": why,
        "restart": restart,
        # With a way back, one crash is enough; without, systemd's three tries are waited for.
        "gate": {**smoke_request(release, warm_ups=WARM_UPS), "hasty": back is not None},
        "soak_seconds": run.plan.settings.rollout.soak_seconds if back else 0,
        "door": leave_and_return(
            run.gateway, run.plan, release.service, others=release.service.name in run.others
        )
        if release.service.door and run.gateway
        else None,
    }


def _files(run: site.HostRun, release: Release) -> dict[str, list[Any]]:
    service = release.service
    described = {
        "tag": service.image.tag,
        "image": release.image,
        "recipe": service.recipe,
        "models": dict(release.models),
        "served_names": list(service.served_names),
        "gate": smoke_request(release, warm_ups=WARM_UPS),
    }
    return {
        f"{release.directory}/compose.yaml": [release.compose, 0o640],
        f"{release.directory}/unit.service": [release.unit, 0o640],
        f"{release.directory}/release.json": [json.dumps(described, indent=1) + "\n", 0o640],
        release.secrets: [secrets_text(run), 0o600],
    }


def switch(
    host: Host,
    run: site.HostRun,
    services: list[dict[str, Any]],
    doors: dict[str, Any] | None = None,
) -> Ended:
    """Switch these services, as one transaction on the host. It goes on when this ends.

    Args:
        doors: what changes of the doors with it (roles/door).

    Raises:
        HostError: when it can't be begun, or is lost sight of.
    """
    home = place(run)
    name = secrets.token_hex(6)
    argv = ["/usr/bin/python3", "-IS", "-c", _PROGRAM.format(home), "--run", f"{home}/request.json"]
    # Killed, it begins again and finds in its journal how far it was.
    # That it went back is its result and no fault of the unit's.
    properties = ["Restart=on-abnormal", "RestartSec=1", "SuccessExitStatus=3 4"]
    again = ["systemd-run", "--quiet", "--no-block", f"--unit={UNIT}"]
    again += [f"--property={one}" for one in properties]
    request = {
        "id": name,
        "by": f"{getpass.getuser()}@{socket.gethostname()}",
        "settle": [*again, "--", *argv],
        "recover": template("serving/recover.service.j2").render(
            place=home, program=_PROGRAM.format(home)
        ),
        "services": services,
        "strangers": unmanaged_containers(run.wanted, run.seen),
        "doors": doors,
    }
    job = {
        "unit": UNIT,
        "description": "sparkwright: switch services to another release",
        "argv": argv,
        "files": {
            **laid_out(home, transaction),
            f"{home}/request.json": request,
        },
        "properties": properties,
        "urgent": True,
    }
    ended = follow(host, run, start=[job])
    if ended.get("id") != name:
        raise remote.HostError(
            f"another switch is under way here ({_words(ended)}): run again when it has ended"
        )
    return _ended(ended)


def follow(
    host: Host, run: site.HostRun, start: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Wait for the switch of a host to end; its journal."""
    said = ""
    request: dict[str, Any] = {"start": start or [], "wait": _EVERY}
    request["watch"] = [{"unit": UNIT, "state": place(run)}]
    while True:
        answer = remote.ask(
            host, "sparkwright-switch", jobs_program, request, timeout=_EVERY + 120
        )[UNIT]
        request["start"] = []
        journal: dict[str, Any] = answer["progress"] or {}
        if journal.get("step") == "ended":
            return journal
        if not answer["running"]:
            words = "; ".join(answer["words"][-2:]) or "it ended without a word"
            raise Broken(f"the switch broke off: {words}")
        if (now := _words(journal)) != said:
            said = now
            host.log(said)


def why(ended: Ended) -> str:
    """One message: what was wrong, and what runs now."""
    first, *rest = ended.reasons or ("no reason was given",)
    now = {
        "reverted": "what ran before runs again",
        "failed": "nothing that is proved runs here now",
    }[ended.result]
    return "\n".join([f"{first}: {now}", *(f"    {line}" for line in rest)])


def _ended(journal: dict[str, Any]) -> Ended:
    return Ended(
        journal["result"],
        tuple(journal["reasons"]),
        float(journal["down_seconds"]),
        dict(journal["checks"]),
    )


def _words(journal: dict[str, Any]) -> str:
    return _WORDS.get(str(journal.get("step")), "starting the switch")


def or_raise(run: site.HostRun, services: list[dict[str, Any]], ended: Ended) -> None:
    """Have the report and the run say so when a switch did not end well.

    Raises:
        HostError: then.
    """
    if ended.result != "good":
        remember(run, services, ended, ended.result)
        raise remote.HostError(why(ended))


def remember(run: site.HostRun, services: list[dict[str, Any]], ended: Ended, state: str) -> None:
    """Have the report say what the services run after a switch that did not end as planned."""
    for service in services:
        checks = ended.checks.get(service["name"])
        seen = run.seen.services.get(service["name"])
        container = seen.container if seen else None
        runs = service["from"] if state != "failed" else None
        run.outcomes[service["name"]] = Outcome(
            state=state,
            release=runs,
            image=container.image if container and container.release == runs else None,
            smoke=smoke_of({"checks": checks}) if checks and state != "failed" else None,
        )
