"""``sparkwright bench``: measure services, and compare the figures with card and earlier runs."""

import datetime as dt
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click
from pydantic import TypeAdapter

from sparkwright.cli.lib import options
from sparkwright.cli.lib.hosts import Hosts, connection_options
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.cli.lib.selection import names_argument
from sparkwright.config.inventory import ssh_address
from sparkwright.config.secrets import existing_key
from sparkwright.config.tls import clients_ca, scheme
from sparkwright.engines import engine
from sparkwright.extras.bench import aiperf, loads
from sparkwright.extras.bench.aiperf import Service, find, reach
from sparkwright.extras.bench.host import Facts, ask, gpu_of, image_of, remarks, settings_of
from sparkwright.extras.bench.judgement import Bench, judged
from sparkwright.extras.bench.loads import Batch, Sweep, batches, read_categories, read_numbers
from sparkwright.extras.bench.results import Program, Result
from sparkwright.extras.bench.run import measure
from sparkwright.extras.bench.section import text
from sparkwright.extras.bench.store import load as load_results
from sparkwright.extras.bench.store import save
from sparkwright.findings.user_error import Messages, UserError
from sparkwright.plan.plan import ServicePlan
from sparkwright.site.fleet import PlannedHost
from sparkwright.text.visible import visible

DOCUMENT = list[Bench]
_LONGEST = 1_000_000
_MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class _Target:
    """A service to measure, and the addresses at which the controller may reach its host."""

    host: PlannedHost
    service: ServicePlan
    candidates: tuple[Service, ...]

    @property
    def name(self) -> str:
        return f"{self.host.plan.host}/{self.service.name}"

    def say(self, line: str) -> None:
        echo(f"{self.name}: {line}", err=True)


@click.command("bench")
@names_argument(Hosts, services=True)
@options.option("bench --categories")
@options.option("bench --concurrency")
@options.option("bench --context")
@options.option("bench --quick")
@options.option("bench --results", type=click.Path(path_type=Path, file_okay=False))
@options.json_option
@connection_options
def command(
    hosts: Hosts,
    categories: str | None,
    concurrency: str | None,
    context: str | None,
    quick: bool,
    results: Path,
    as_json: bool,
) -> None:
    """Measure services, and compare with the cards' figures and with their own past.

    First and next tokens, decode and prefill rates, and how much of the draft is accepted, by
    kind of prompt, requests at a time and length of the prompt. This machine measures service by
    service; other use of the services meanwhile distorts the figures. Exit code 1 if a figure is
    out of range or requests failed.
    """
    default = loads.QUICK if quick else loads.FULL
    sweep = Sweep(
        read_categories(categories) if categories else default.categories,
        read_numbers("--concurrency", concurrency) if concurrency else default.concurrency,
        read_numbers("--context", context, most=_LONGEST) if context else default.context,
    )
    program = find(os.environ)
    targets = list(_targets(hosts))
    chosen = hosts.only(dict.fromkeys(target.host.plan.host for target in targets))
    before = ask(chosen)
    targets = list(_awake(targets, before, named=bool(hosts.named_services)))
    done = []
    for target in targets:
        if facts := before.get(target.host.plan.host):
            done.append(
                _bench(program, target, batches(sweep, quick=quick), facts, chosen, results)
            )
            if not as_json:
                echo(f"\n{text(done[-1])}")
    if as_json:
        options.print_json(TypeAdapter(DOCUMENT).dump_python(done, mode="json", by_alias=True))
    sys.exit(int(len(done) < len(targets) or not all(bench.well for bench in done)))


def _targets(chosen: Hosts) -> Iterator[_Target]:
    hosts = load(chosen).or_raise()
    data = chosen.everyone
    for name, host in hosts.items():
        settings = host.plan.settings
        key, ca = existing_key(settings.api_key_source, os.environ), clients_ca(settings)
        addresses = list(filter(None, (ssh_address(name, data[name]), settings.lan_address)))
        for plan in host.plan.services:
            if not plan.follower and chosen.means(name, plan.name):
                how = scheme(settings, proxied=plan.proxy)
                served = [f"[{address}]" if ":" in address else address for address in addresses]
                urls = [f"{how}://{address}:{plan.port}" for address in served]
                service = Service("", plan.served_names[0], key, ca=ca, engine=plan.engine)
                services = (replace(service, url=url) for url in urls)
                yield _Target(host, plan, tuple(services))


def _awake(
    targets: list[_Target], before: Mapping[str, Facts], *, named: bool
) -> Iterator[_Target]:
    """All but the exclusive services that sleep.

    Raises:
        UserError: the command line names a sleeping service.
    """
    for target in targets:
        facts, name = before.get(target.host.plan.host), target.service.name
        active = facts.sleeping.get(name) if facts else None
        if active is None:
            yield target
            continue
        mistake = _MESSAGES.mistake(
            "sleeps", f"--service {name}", target=target.name, active=active, service=name
        )
        if named:
            raise UserError([mistake])
        echo(mistake.observed, err=True)


def _bench(
    program: Path, target: _Target, sweep: tuple[Batch, ...], before: Facts, hosts: Hosts,
    directory: Path,
) -> Bench:  # fmt: skip
    """Measure one service, and store the result."""
    host, plan = target.host.plan.host, target.service
    service = reach(target.name, target.candidates)
    when = dt.datetime.now(dt.UTC).replace(microsecond=0)
    loaded: dict[str, Facts] = {}
    context = click.get_current_context()

    def while_last() -> None:
        with context.scope(cleanup=False):  # a thread of its own knows no options of the command
            loaded.update(ask(hosts.only([host]), under_load=True))

    target.say(f"{sum(len(batch.loads) for batch in sweep)} loads at {service.url}")
    kinds = engine(plan.engine).kinds(dict(plan.arguments), plan.task)
    measured = measure(
        program, service, sweep, seed=f"{when:%Y%m%dT%H%M%S}", say=target.say,
        while_last=while_last, endpoint=aiperf.endpoint(service, kinds),
    )  # fmt: skip
    under_load, after = loaded.get(host), ask(hosts.only([host])).get(host)
    running, version = before.running.get(plan.name), before.probe.versions.get(plan.name)
    as_planned = running is not None and running.release == before.planned.get(plan.name)
    result = Result(
        host=host, service=plan.name, when=when, image=image_of(running, plan),
        recipe=running.recipe if running else None, models=running.models if running else {},
        release=running.release if running else None, kernel=before.probe.kernel,
        engine=Program(name=engine(plan.engine).title, version=version) if version else None,
        gpu=gpu_of(before, under_load, after),
        settings=settings_of(plan) if as_planned else {}, cells=tuple(measured.cells),
        generator=Program(name=aiperf.LABEL, version=aiperf.pinned(), command=measured.command),
    )  # fmt: skip
    for remark in (*measured.remarks, *remarks(plan.name, before, under_load, after)):
        echo(f"{click.style(target.name, fg='yellow')}: {visible(remark)}", err=True)
    target.say(f"kept as {save(directory, result)}")
    past = load_results(directory).services[host, plan.name]
    return judged(past[: past.index(result) + 1], target.host.catalog)
