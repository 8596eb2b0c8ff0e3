"""``sparkwright bench``: measure services, and compare the figures with the cards."""

import datetime as dt
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import TypeAdapter

from sparkwright.cli.lib import options, selection
from sparkwright.cli.lib.hosts import Hosts, connection_options
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.config.secrets import VARIABLE, existing_key
from sparkwright.config.settings import EVERY_ADDRESS
from sparkwright.engines import engine
from sparkwright.extras.bench import aiperf, judgement, loads, run
from sparkwright.extras.bench.host import Facts, ask, gpu_of, image_of, remarks, settings_of
from sparkwright.extras.bench.loads import Batch, batches
from sparkwright.extras.bench.measured_service import Service, reach
from sparkwright.extras.bench.results import Program, Result
from sparkwright.extras.bench.section import text
from sparkwright.extras.bench.store import save
from sparkwright.findings.user_error import Messages, Problems, UserError
from sparkwright.plan.plan import ServicePlan
from sparkwright.site.endpoints import Endpoint, Key, endpoint_of
from sparkwright.site.fleet import PlannedHost
from sparkwright.text.visible import visible

DOCUMENT = list[judgement.Bench]
_MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class _Target:
    """A service to be measured, and its host's facts."""

    host: PlannedHost
    plan: ServicePlan
    facts: Facts

    @property
    def name(self) -> str:
        return f"{self.host.plan.host}/{self.plan.name}"

    @property
    def endpoint(self) -> Endpoint:
        at = self.host.address if self.plan.bind in EVERY_ADDRESS else self.plan.bind
        key = Key(VARIABLE, self.host.plan.settings.api_key_source)
        return endpoint_of(self.host.plan, self.plan, self.host.catalog, at, key)

    def say(self, line: str) -> None:
        echo(f"{self.name}: {line}", err=True)


@click.command("bench")
@selection.names_argument(Hosts, services=True)
@options.option("bench --category", type=click.Choice(loads.CATEGORIES))
@options.option("bench --concurrency", type=click.IntRange(1, 1024))
@options.option("bench --context", type=click.IntRange(0, 1_000_000))
@options.option("bench --quick")
@options.option("bench --results", type=click.Path(path_type=Path, file_okay=False))
@options.json_option
@connection_options
def command(
    hosts: Hosts,
    categories: tuple[str, ...],
    concurrency: tuple[int, ...],
    context: tuple[int, ...],
    quick: bool,
    results: Path,
    as_json: bool,
) -> None:
    """Measure services, and compare the results with the cards' figures.

    `bench` measures the times of first and next tokens, decode and prefill rates, and the accepted
    share of drafts, by kind and length of prompt and by concurrency. This machine measures one
    service after the other; other requests to the services distort the figures. Exit with 1 if a
    figure is out of range or requests failed.
    """
    default = loads.QUICK if quick else loads.FULL
    sweep = batches(categories or default[0], concurrency or default[1], context or default[2])
    program, planned = aiperf.find(os.environ), load(hosts).or_raise()
    before = ask(hosts)
    problems, done = Problems(), list[judgement.Bench]()
    for target in list(_targets(hosts, planned, before)):
        with problems.collected():
            done.append(_bench(program, target, sweep, hosts, results))
            if not as_json:
                echo(f"\n{text(done[-1])}")
    if as_json:
        options.print_json(TypeAdapter(DOCUMENT).dump_python(done, mode="json", by_alias=True))
    problems.stop()
    sys.exit(int(not planned.keys() <= before.keys() or not all(bench.well for bench in done)))


def _targets(
    hosts: Hosts, planned: Mapping[str, PlannedHost], facts: Mapping[str, Facts]
) -> Iterator[_Target]:
    """Services of the hosts that answered, except exclusive services that sleep.

    Raises:
        UserError: the command line names a sleeping service.
    """
    for name, host in planned.items():
        for plan in host.plan.services:
            if plan.follower or name not in facts or not hosts.means(name, plan.name):
                continue
            target, active = _Target(host, plan, facts[name]), facts[name].sleeping.get(plan.name)
            where = f"--service {plan.name}"
            sleeps = _MESSAGES.mistake("sleeps", where, target=target, active=active)
            if active is None:
                yield target
            elif hosts.named_services:
                raise UserError([sleeps])
            else:
                echo(sleeps.observed, err=True)


def _bench(
    program: Path, target: _Target, sweep: tuple[Batch, ...], hosts: Hosts, directory: Path
) -> judgement.Bench:
    """Measure one service, and store the result."""
    host, plan, before, endpoint = target.host.plan.host, target.plan, target.facts, target.endpoint
    running = before.running.get(plan.name)
    if running is None:
        raise _MESSAGES.refusal("not-running", target.name)
    service = reach(Service(
        endpoint.base_url.removesuffix("/v1"), plan.served_names[0],
        existing_key(endpoint.key.source, os.environ), ca=endpoint.ca, engine=plan.engine,
    ))  # fmt: skip
    when = dt.datetime.now(dt.UTC).replace(microsecond=0)
    loaded: dict[str, Facts] = {}
    target.say(f"{sum(len(batch.loads) for batch in sweep)} loads to measure at {service.url}")
    measured = run.measure(
        program, service, sweep, seed=f"{when:%Y%m%dT%H%M%S}", say=target.say,
        while_last=lambda: loaded.update(ask(hosts.only([host]), under_load=True)),
        endpoint=aiperf.endpoint(service, endpoint.kinds),
    )  # fmt: skip
    under_load, as_planned = loaded.get(host), running.release == before.planned.get(plan.name)
    version = plan.version if as_planned else None
    result = Result(
        host=host, service=plan.name, when=when, image=image_of(running), recipe=running.recipe,
        models=running.models, release=running.release, gpu=gpu_of(before, under_load),
        engine=Program(name=engine(plan.engine).title, version=version),
        settings=settings_of(plan) if as_planned else {}, cells=tuple(measured.cells),
        generator=Program(name=aiperf.LABEL, version=aiperf.pinned(), command=measured.command),
    )  # fmt: skip
    for remark in (*measured.remarks, *remarks(plan.name, before, under_load)):
        echo(f"{click.style(target.name, fg='yellow')}: {visible(remark)}", err=True)
    target.say(f"the result is in {save(directory, result)}")
    return judgement.judged(result, target.host.catalog)
