"""``sparkwright bench``: measure what services deliver, and hold it against card and past."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from sparkwright.cli.lib import completion
from sparkwright.cli.lib.connecting import connection_options
from sparkwright.cli.lib.findings import paint
from sparkwright.cli.lib.hosts import ask_hosts
from sparkwright.cli.lib.options import (
    data_option,
    json_option,
    limit_option,
    print_json,
    site_inventory,
)
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.config.inventory import read_inventory, ssh_address
from sparkwright.config.secrets import VARIABLE, Secret, api_key
from sparkwright.config.tls import clients_ca, scheme
from sparkwright.extras.bench import aiperf, loads
from sparkwright.extras.bench.document import MeasuredService, document
from sparkwright.extras.bench.host import Facts, changed, facts, gpu_of, image_of, settings_of
from sparkwright.extras.bench.judgement import Bench, judged
from sparkwright.extras.bench.loads import Batch, batches, read_categories, read_numbers
from sparkwright.extras.bench.results import LoadGenerator, Result
from sparkwright.extras.bench.run import Measured, measure
from sparkwright.extras.bench.service import reach
from sparkwright.extras.bench.store import export, save
from sparkwright.extras.bench.store import load as load_results
from sparkwright.extras.bench.text import text
from sparkwright.extras.bench.texts import CATEGORIES
from sparkwright.extras.bench.tool import Tool, find
from sparkwright.findings.render import text as findings_text
from sparkwright.findings.user_error import UserError, mistake, suggest
from sparkwright.host.bench import Running
from sparkwright.plan.plan import ServicePlan
from sparkwright.site.fleet import PlannedHost
from sparkwright.text.visible import visible

_LONGEST = 1_000_000


@dataclass(frozen=True)
class _Target:
    """One service that is to be measured, and where the controller may reach its host."""

    host: PlannedHost
    service: ServicePlan
    addresses: tuple[str, ...]
    key: Secret

    @property
    def name(self) -> str:
        return f"{self.host.plan.host}/{self.service.name}"


DOCUMENT = list[MeasuredService]


@click.command("bench")
@click.argument("inventory", type=click.Path(path_type=Path, dir_okay=False), required=False)
@data_option
@limit_option
@click.option(
    "--service",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.services,
    help="Measure only this service (repeatable).",
)
@click.option(
    "--categories",
    default=None,
    help=f"Kinds of prompts to send.  [default: {','.join(CATEGORIES)}]",
)
@click.option(
    "--concurrency", default=None,
    help=f"Requests to send at a time.  [default: {','.join(map(str, loads.CONCURRENCY))}]",
)  # fmt: skip
@click.option(
    "--context", default=None, metavar="2k,16k,…",
    help="Tokens of long prompts, sent one at a time, or none.  [default: 2k,16k,33k]",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Send two categories, 1 and 8 at a time, 2k: minutes.")
@click.option(
    "--results", type=click.Path(path_type=Path, file_okay=False), show_default=True,
    default=Path(".sparkwright/bench"), help="Where results are kept.",
)  # fmt: skip
@click.option(
    "--export", "exported", type=click.Path(path_type=Path, dir_okay=False), default=None,
    metavar="FILE", help="Write the kept results of the selection as one file. Without an "
    "INVENTORY nothing is measured.",
)  # fmt: skip
@json_option
@connection_options
def command(
    inventory: Path | None,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    names: tuple[str, ...],
    categories: str | None,
    concurrency: str | None,
    context: str | None,
    quick: bool,
    results: Path,
    exported: Path | None,
    as_json: bool,
) -> None:
    """Measure services, and compare with the cards' figures and with their own past.

    First and next tokens, decode and prefill rates, and how much of the draft is accepted, by
    kind of prompt, requests at a time and length of the prompt. It is measured from here, one
    service after the other; whoever uses them meanwhile spoils the figures. Exit code 1 when
    something is out of range or requests failed.
    """
    if inventory is None:
        if exported is not None and not overrides:
            _export(exported, results, set(limit), set(names))
            return
        inventory = site_inventory()
    sweep = batches(
        read_categories(categories)
        if categories
        else (loads.QUICK_CATEGORIES if quick else CATEGORIES),
        read_numbers("--concurrency", concurrency)
        if concurrency
        else (loads.QUICK_CONCURRENCY if quick else loads.CONCURRENCY),
        read_numbers("--context", context, most=_LONGEST)
        if context
        else (loads.QUICK_CONTEXT if quick else loads.CONTEXT),
        quick=quick,
    )
    tool = find(os.environ)
    targets = list(_targets(inventory, overrides, limit, names))
    hosts = tuple(dict.fromkeys(target.host.plan.host for target in targets))
    ask = partial(_ask, inventory, overrides)
    before = ask(hosts, "facts")
    targets = list(_awake(targets, before, asked=bool(names)))
    done = []
    for target in targets:
        if target.host.plan.host in before:
            done.append(_bench(tool, target, sweep, before[target.host.plan.host], ask, results))
            if not as_json:
                echo(f"\n{text(done[-1])}")
    if exported is not None:
        _export(exported, results, set(hosts), {target.service.name for target in targets})
    if as_json:
        print_json([document(bench) for bench in done])
    sys.exit(int(len(done) < len(targets) or not all(bench.well for bench in done)))


def _targets(
    inventory: Path, overrides: tuple[str, ...], limit: tuple[str, ...], names: tuple[str, ...]
) -> Iterator[_Target]:
    hosts = load(inventory, overrides, limit).or_raise()
    known = sorted({service.name for host in hosts.values() for service in host.plan.services})
    wrong = [name for name in names if name not in known]
    if wrong:
        raise UserError(
            mistake(f"--service {name}", "no host has a service of this name", suggest(name, known))
            for name in wrong
        )
    data = {host.name: host.data for host in read_inventory(inventory, overrides)}
    for name, host in hosts.items():
        settings = host.plan.settings
        source = settings.api_key_source
        made = not isinstance(source, str) or Path(source).exists()
        if VARIABLE not in os.environ and not made:
            raise UserError(
                [mistake(str(source), "there is no API key of a fleet here",
                         f"deploy first, or give the fleet's key in {VARIABLE}")]
            )  # fmt: skip
        addresses = (ssh_address(name, data[name]), settings.lan_address)
        for service in host.plan.services:
            if not service.follower and (not names or service.name in names):
                yield _Target(
                    host, service, tuple(filter(None, addresses)), api_key(source, os.environ)
                )


def _awake(
    targets: list[_Target], before: Mapping[str, Facts], *, asked: bool
) -> Iterator[_Target]:
    """All but the exclusive services that sleep.

    Raises:
        UserError: for one of those that was named.
    """
    for target in targets:
        seen, name = before.get(target.host.plan.host), target.service.name
        runs = seen.sleeping.get(name) if seen else None
        if runs is None:
            yield target
        elif asked:
            raise UserError(
                [mistake(f"--service {name}", f"{target.name} sleeps: {runs} runs",
                         f"sparkwright activate {name}")]
            )  # fmt: skip
        else:
            echo(f"{target.name} sleeps: {runs} runs", err=True)


def _ask(
    inventory: Path, overrides: tuple[str, ...], hosts: tuple[str, ...], question: str
) -> dict[str, Facts]:
    answers, _ = ask_hosts(inventory, hosts, overrides, f"roles.bench.{question}")
    return {name: facts(answer) for name, answer in answers.items()}


def _bench(
    tool: Tool,
    target: _Target,
    sweep: tuple[Batch, ...],
    before: Facts,
    ask: Any,
    directory: Path,
) -> Bench:
    """Measure one service, and keep what was measured."""
    host, plan = target.host.plan.host, target.service
    settings = target.host.plan.settings
    service = reach(
        target.name, target.addresses, plan.client_port, plan.served_names[0], target.key,
        scheme=scheme(settings, proxied=plan.proxy is not None), ca=clients_ca(settings),
    )  # fmt: skip
    when = dt.datetime.now(dt.UTC).replace(microsecond=0)
    seen: dict[str, Facts] = {}
    context = click.get_current_context()

    def while_last() -> None:
        with context.scope(cleanup=False):  # a thread of its own knows no options of the command
            seen.update(ask((host,), "under_load"))

    _say(target, f"{sum(len(batch.loads) for batch in sweep)} loads at {service.url}")
    measured = measure(
        tool,
        service,
        sweep,
        seed=f"{when:%Y%m%dT%H%M%S}",
        say=partial(_say, target),
        while_last=while_last,
    )
    under_load = seen.get(host)
    after = ask((host,), "facts").get(host)
    result = _result(tool, target, when, measured, before, under_load, after)
    for remark in (*measured.remarks, *_remarks(target, before, under_load, after)):
        echo(f"{click.style(target.name, fg='yellow')}: {visible(remark)}", err=True)
    _say(target, f"kept as {save(directory, result)}")
    past = load_results(directory).services[host, plan.name]
    return judged(past[: past.index(result) + 1], target.host.catalog)


def _result(
    tool: Tool, target: _Target, when: dt.datetime, measured: Measured, before: Facts,
    under_load: Facts | None, after: Facts | None,
) -> Result:  # fmt: skip
    plan = target.service
    running = before.services.get(plan.name, Running())
    as_planned = running.release is not None and running.release == before.planned.get(plan.name)
    return Result(
        host=target.host.plan.host,
        service=plan.name,
        when=when,
        recipe=running.recipe,
        image=image_of(running, plan),
        models=running.models,
        release=running.release,
        vllm=running.engine,
        kernel=before.kernel,
        gpu=gpu_of(before, under_load, after),
        settings=settings_of(plan) if as_planned else {},
        generator=LoadGenerator(name=aiperf.LABEL, version=tool.version, command=measured.command),
        cells=measured.cells,
    )


def _remarks(
    target: _Target, before: Facts, under_load: Facts | None, after: Facts | None
) -> Iterator[str]:
    """What a reader of the figures must know."""
    name = target.service.name
    running = before.services.get(name, Running())
    if running.release is None:
        yield "its container was not found on the host: image, models and release are unknown"
    elif running.release != before.planned.get(name):
        yield (
            f"release {running.release} runs, not the planned {before.planned.get(name)}: "
            "its arguments are not recorded"
        )
    if after is not None:
        yield from changed(before, after, name)
    if under_load is None or not under_load.samples:
        yield "the GPU was not seen under load: its clock is unknown"


def _export(path: Path, directory: Path, hosts: set[str], names: set[str]) -> None:
    stored = load_results(directory)
    if stored.problems:
        echo(findings_text(stored.problems, paint=paint), err=True)
    chosen = [
        result
        for (host, service), found in stored.services.items()
        if (not hosts or host in hosts) and (not names or service in names)
        for result in found
    ]
    if not chosen:
        raise UserError([mistake(str(directory), "it has no such results", "measure some first")])
    echo(f"{export(path, chosen)} results in {path}", err=True)


def _say(target: _Target, line: str) -> None:
    echo(f"{target.name}: {line}", err=True)
