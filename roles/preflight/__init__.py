"""Preflight: one probe per host, every finding at once, and a host that fails is not touched.

Runs alone too: ``pyinfra inventory/lab.py roles.preflight.preflight``.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import suppress

import click
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.operation import operation
from pyinfra.context import ctx_host

from roles import connection, door, lock, remote, site, storage, watch
from roles.serving.switch import Broken, follow
from sparkwright.catalog.gpu import QUERY_FIELDS
from sparkwright.findings.finding import errors
from sparkwright.findings.render import text
from sparkwright.host import observe as probe_program
from sparkwright.preflight.hardware import new_violations
from sparkwright.preflight.judge import judge
from sparkwright.preflight.observation import Probe, parse_probe


def preflight() -> None:
    """Probe and judge this host; refuse it when any finding is an error."""
    host = ctx_host.get()
    run = site.host_run(host)
    if run is None:
        return
    run.connection = connection.addresses(host)
    try:
        asked = time.time()
        run.probe = probe(host, run)
        if run.probe.switching and not site.dry():
            if busy := lock.in_the_way(run):
                raise remote.HostError(busy)
            host.log("a switch that was begun before is still under way: waiting for its end")
            with suppress(Broken):  # what it left is put in order by this run
                follow(host, run)
            asked = time.time()
            run.probe = probe(host, run)
    except remote.HostError as error:
        refuse(host, run, str(error))
        return
    # Half of the round trip: about when the host read its clock.
    run.findings = judge(run.wanted, run.probe, now=(asked + time.time()) / 2)
    run.findings += new_violations(run.wanted, run.probe, run.violations)
    for line in text(run.findings, hosts=False, paint=site.paint).splitlines():
        host.log(line)
    bad = errors(run.findings)
    if bad:
        names = ", ".join(dict.fromkeys(finding.id for finding in bad))
        refuse(host, run, f"refused by preflight: {names}")
        return
    _passed(name="Preflight", warnings=len(run.findings))


@operation()
def _passed(warnings: int) -> Generator[PyinfraCommand, None, None]:
    """The verdict as an operation, so that it shows in pyinfra's results."""
    ctx_host.get().noop(f"preflight passed, {warnings} warnings")
    yield from ()


def refuse(host: Host, run: site.HostRun, reason: str) -> None:
    """Leave this host out of the run, and say why."""
    run.refused = reason
    host.log(click.style(f"{reason}: this host is left as it is", fg="red"))
    # pyinfra raises when no host is left; the report at the end says more than its message.
    with suppress(PyinfraError):
        host.state.fail_hosts({host})


def probe(host: Host, run: site.HostRun) -> Probe:
    """See everything of a host that the roles need to know. One round trip."""
    settings = run.plan.settings
    request = {
        "gpu_fields": QUERY_FIELDS,
        "models_root": settings.models_root,
        "services_root": settings.services_root,
        "directories": list(storage.directories(run.plan)),
        "images": sorted({release.image for release in run.wanted.releases}),
        "models": [
            {"directory": directory, "commit": model.commit}
            for directory, model in run.wanted.models().items()
        ],
        "stores": [
            {"directory": pull.store, "digest": pull.digest.partition(":")[2]}
            for pull in run.wanted.pulls()
        ],
        "ports": sorted(
            {
                *(service.port for service in run.plan.services),
                *(one.door.health_port for one in run.plan.services if one.door),
                *door.ports(run),
            }
        ),
        "units": [*door.units(run), *watch.units(run)],
        "files": sorted({**door.files(run), **watch.files(run)}),
        "services": [
            {
                "name": release.service.name,
                "home": release.home,
                "unit": release.service.unit,
                "port": release.service.port,
                "release": release.id,
            }
            for release in run.wanted.releases
        ],
    }
    # Without sudo the probe still says everything else.
    answer = remote.ask(
        host, "sparkwright-probe", probe_program, request, sudo=remote.Sudo.IF_POSSIBLE, timeout=60
    )
    return parse_probe(answer)
