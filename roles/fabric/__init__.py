"""Fabric: ConnectX-7 between hosts, for ``sparkwright fabric``. No deploy calls it."""

from __future__ import annotations

import json

from pyinfra.api.host import Host
from pyinfra.context import ctx_host

from sparkwright.checks.fabric import addresses as planned
from sparkwright.facts.asking import HostError
from sparkwright.findings.render import text
from sparkwright.host.fabric_measure import MeasureAnswer, Plan
from sparkwright.host.lib.records import decode, encode
from sparkwright.operations.changing import paint
from sparkwright.operations.connections import addresses as connection
from sparkwright.operations.fabric import addresses as operations
from sparkwright.operations.fabric.looking import state_of
from sparkwright.run.asked import ask_each
from sparkwright.run.fabric_testing import measured as steps
from sparkwright.run.state import HostRun, host_run, refuse, run_of


def addresses() -> None:
    """Have this host's rails at the addresses of ``fabric_addresses``."""
    host = ctx_host.get()
    one = host_run(host)
    wanted = one.settings.fabric_addresses if one else None
    if one is None or wanted is None or host.name not in wanted.hosts:
        return
    one.connection = connection(host)
    try:
        state = state_of(host)
    except HostError as error:
        refuse(host, str(error))
        return
    came = one.connection[1] if one.connection else None
    present = frozenset(run_of(host).hosts)
    found = list(planned.problems(wanted, host.name, state, came, present))
    if found:
        for line in text(found, hosts=False, paint=paint).splitlines():
            host.log(line)
        refuse(host, "refused: fabric-addresses")
        return
    given = planned.addresses_of(wanted, host.name, state)
    pending = planned.pending(wanted, given, state)
    operations.configured(
        name="Fabric: addresses",
        text=planned.netplan(wanted, given),
        devices=[each.rail.name for each in given],
        pending=pending,
        before=state.netplan,
        services_root=one.settings.services_root,
        break_lock=one.settings.break_lock,
        _sudo=True,
        # pyinfra would put a password into a command line.
        _sudo_password="",
    )
    if not pending:
        return
    for name, operation in (
        ("Fabric: every peer answers", operations.proved),
        ("Fabric: keep the addresses", operations.kept),
    ):
        operation(
            name=name,
            pings=planned.pings(wanted, given),
            services_root=one.settings.services_root,
            break_lock=one.settings.break_lock,
        )


def looked(answers: str | None = None, planless: bool = False) -> None:
    """Look at this host's part of the fabric, and at the image that it serves with.

    Args:
        answers: file that gets what the hosts answer.
        planless: whether it goes by what the hosts say where the plan is broken.
    """
    ask_each("Fabric: look", _look)


def _look(host: Host, one: HostRun) -> object:
    services = one.services
    image = services[0].image if services else None
    wanted = one.settings.fabric_addresses
    clusters = (each for each in one.settings.clusters.values()
                if each.fabric == "cx7" and host.name in each.hosts)  # fmt: skip
    cluster = next(clusters, None)
    return {
        "state": encode(state_of(host, image)),
        "image": image,
        "cluster": list(cluster.hosts) if cluster else None,
        "addresses": wanted.model_dump(mode="json")
        if wanted and host.name in wanted.hosts
        else None,
    }


def measured(plan: str, answers: str | None = None) -> None:
    """Measure what was planned for this host.

    Args:
        plan: ``fabric.measure.Plan`` as JSON.
        answers: file that gets what the hosts answer.
    """
    host = ctx_host.get()
    one = host_run(host)
    if one is None:
        return
    known = MeasureAnswer()
    one.answer = encode(known)

    def told(answer: MeasureAnswer) -> None:
        nonlocal known
        gather = answer.gather or known.gather
        known = MeasureAnswer(
            (*known.pings, *answer.pings), (*known.writes, *answer.writes), gather
        )
        one.answer = encode(known)

    steps(host, decode(Plan, json.loads(plan)), told)
