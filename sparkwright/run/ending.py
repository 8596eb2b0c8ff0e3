"""Table and record of a finished run."""

import json
import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import click
from pyinfra.context import ctx_state

from sparkwright.config import secrets, settings, tls
from sparkwright.documents.text_files import write
from sparkwright.host.service import Service
from sparkwright.plan.plan import ServicePlan
from sparkwright.results import run_summary as table
from sparkwright.run.state import HostRun, Run
from sparkwright.text.table import columns
from sparkwright.text.visible import paragraph

_STATE = Path(".sparkwright")
#: Environment variable with the path of a run's record; if it is set, ``--dry`` also writes a
#: record.
RECORD = "SPARKWRIGHT_RECORD"


def report(run: Run, *, as_json: bool) -> None:
    """Print the run's table and keep its record for ``sparkwright report``.

    A read-only run writes nothing, unless the environment names a file for its record.

    Args:
        as_json: whether standard output is pyinfra's JSON, which must not be mixed with other text.
    """
    if run.broken:
        click.echo(_unplanned(run), err=as_json)
        return  # the planned state is unknown, so the record of the last deploy stays
    rows = [_row(name, item, dry=run.dry) for name, item in run.hosts.items()]
    named = os.environ.get(RECORD)
    record = Path(named or _STATE / "last-run.json")
    # A declined run has no observations, so the last known states stay.
    seen = [row for row in rows if named or row.is_known]
    if named or (seen and not run.dry):
        others = [] if named else _others(record, run.everyone - {row.host for row in seen})
        write(record, table.as_json(seen, dry=run.dry, others=others))
    keys = {name: secrets.pasted(item.settings.api_key_source) for name, item in run.hosts.items()}
    text = table.render(rows, dry=run.dry, seconds=time.monotonic() - run.started, keys=keys)
    click.echo(text, err=as_json)


def _others(record: Path, hosts: Collection[str]) -> list[Any]:
    """Return the rows of hosts in the record of earlier runs; empty if the record can't be read."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        rows = json.loads(record.read_text("utf-8"))["hosts"]
        return [row for row in rows if row["host"] in hosts]
    return []


def _unplanned(run: Run) -> str:
    """Render the outcomes of services and hosts in a run without a plan."""
    rows = [("HOST", "SERVICE", "STATE", "RELEASE")]
    failed = []
    for name, item in run.hosts.items():
        rows += [(name, service, outcome.state, outcome.release or "-")
                 for service, outcome in item.outcomes.items()]  # fmt: skip
        if item.memory.failure:
            failed.append(f"{name}: {paragraph(item.memory.failure)}")
    return "\n".join(["", *(columns(rows) if len(rows) > 1 else []), *failed])


def _pending(name: str, host_run: HostRun) -> Iterator[str]:
    """Yield the changes that the run would make on a host.

    These are the changes that sparkwright's operations have announced, and the names of the user's
    operations that would change something.
    """
    announced = host_run.memory.pending
    yield from chain.from_iterable(announced.values())
    if host_run.memory.failure is None and ctx_state.isset():
        state = ctx_state.get()
        for op_hash, data in state.ops[state.inventory.get_host(name)].items():
            if op_hash not in announced and data.operation_meta._maybe_is_change:
                yield ", ".join(sorted(state.get_op_meta(op_hash).names))


def _row(name: str, host_run: HostRun, *, dry: bool) -> table.Row:
    seen = host_run.memory.observation
    gpu = seen.gpu.gpus[0] if seen and seen.gpu.gpus else None
    return table.Row(
        host=name,
        services=tuple(service_row(host_run, *both) for both in host_run.desired.planned_services),
        refused=host_run.memory.failure,
        left=host_run.left,
        findings=tuple(host_run.findings),
        changes=tuple(host_run.memory.changes),
        pending=tuple(_pending(name, host_run)) if dry else (),
        executions=host_run.memory.executions,
        gpu=gpu.name if gpu else None,
        driver=gpu.driver if gpu else None,
    )


def service_row(host_run: HostRun, service: ServicePlan, rendered: Service) -> table.ServiceRow:
    """Return the row of a service: the planned release, or the running release if it differs."""
    outcome = host_run.outcomes.get(service.name)
    # A service on a loopback address can't be reached at the host's address.
    at = service.bind if settings.is_loopback(service.bind) else host_run.address
    row = table.ServiceRow(
        name=service.name,
        address=f"[{at}]:{service.port}" if ":" in at else f"{at}:{service.port}",
        served_names=service.served_names,
        tag=service.image.tag,
        image=rendered.image,
        models=rendered.models,
        release=rendered.release,
        smoke=host_run.smoke.get(service.name),
        scheme=tls.scheme(host_run.settings, proxied=service.proxy),
        ca=tls.clients_ca(host_run.settings),
        head=service.rank.hosts[0] if service.rank and service.follower else None,
        routes=rendered.gate.routes,
    )
    if outcome is None or (outcome.state == "sleeps" and host_run.memory.failure):
        return row
    return replace(
        row,
        tag="", models={}, image=outcome.image or "", release=outcome.release or "?",
        smoke=outcome.smoke, outcome=outcome.state,
    )  # fmt: skip
