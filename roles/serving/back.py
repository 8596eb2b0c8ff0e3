"""Going back on request: ``sparkwright rollback INVENTORY [--to RELEASE]``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from roles import preflight, remote, site, steps
from roles.serving import turns
from roles.serving.look import ask
from roles.serving.switch import or_raise, remember, switch, to_release
from sparkwright.plan.rollout import behind_another_door, earlier

#: How the command line says which release and which service: {"to", "service"}, both or none.
WISH = "SPARKWRIGHT_ROLLBACK"


def rollback() -> None:
    """Switch each service to the release before, in the same turns as a deploy."""
    host = ctx_host.get()
    run = site.host_run(host)
    if run is None:
        return
    wish = json.loads(os.environ.get(WISH, "{}"))
    try:
        run.probe = preflight.probe(host, run)
        targets = _targets(run, ask(host, run, texts=False), wish)
    except remote.HostError as error:
        preflight.refuse(host, run, str(error))
        return
    for name, names in turns.each():
        steps.step(name, partial(_pending, names, targets), partial(_act, targets))


def _targets(
    run: site.HostRun, answer: dict[str, Any], wish: dict[str, str]
) -> dict[str, tuple[str, str]]:
    """Service -> the release that runs, and the one to go to."""
    found = {}
    wrong = []
    for service in run.plan.services:
        if wish.get("service") not in (None, service.name):
            continue
        seen = answer["services"].get(service.name)
        if seen is None:
            wrong.append(f"service {service.name} was never started here")
            continue
        kept = {name: float(one["at"]) for name, one in seen["releases"].items()}
        history = [one for one in answer["history"] if one["service"] == service.name]
        target = wish.get("to") or earlier(seen["current"], kept, history)
        if target is None:
            wrong.append(f"service {service.name} has no earlier release here")
        elif target not in kept:
            wrong.append(
                f"service {service.name} has no release {target} here; "
                f"there are {', '.join(sorted(kept))}"
            )
        elif why := behind_another_door(
            service.name,
            target,
            was=seen["releases"][target]["door"],
            planned=service.door is not None,
        ):
            wrong.append(why)
        elif target != seen["current"]:
            found[service.name] = (str(seen["current"]), target)
    if wrong:
        raise remote.HostError("; ".join(wrong))
    return found


def _pending(
    names: list[str], targets: dict[str, tuple[str, str]], run: site.HostRun
) -> Sequence[str]:
    if run.plan.host not in names:
        return []
    return [f"service {name}: {runs} back to {to}" for name, (runs, to) in targets.items()]


def _act(targets: dict[str, tuple[str, str]], host: Host, run: site.HostRun) -> Sequence[str]:
    services = [
        to_release(run, name, to, runs, "rolled back by request")
        for name, (runs, to) in targets.items()
    ]
    ended = turns.take(host, run, lambda: switch(host, run, services), left=lambda: None)
    or_raise(run, services, ended)
    swapped = [{**one, "from": one["to"]} for one in services]
    remember(run, swapped, ended, "rolled back")
    return [
        *_pending([host.name], targets, run),
        f"down for {ended.down_seconds:.1f} s",
    ]
