"""Questions to hosts that change nothing: what they run, what is wrong, how fast they are.

Each is one line in pyinfra's results; the answer goes to the command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from pyinfra.api.host import Host

from sparkwright.catalog import Catalog
from sparkwright.checks.host.judge import judge
from sparkwright.checks.smoke.deep import deep_request, deep_seconds, unplanned_request
from sparkwright.engines import ENGINES, engine, metric_names
from sparkwright.facts.answers import HostError, of_each
from sparkwright.facts.asking import ask
from sparkwright.findings.render import data
from sparkwright.host import bench, doctor, logs, verify_models
from sparkwright.host.bench import BenchAnswer, BenchRequest, BenchService
from sparkwright.host.disk_usage import DiskUsageRequest
from sparkwright.host.doctor import Examination, ExaminationRequest, ExaminedService
from sparkwright.host.lib.records import encode
from sparkwright.host.logs import LogsAnswer, LogsRequest
from sparkwright.host.service import Service
from sparkwright.host.smoke import deep
from sparkwright.host.smoke.deep import DeepAnswer, DeepRequests
from sparkwright.host.verify_models import Verified, VerifyRequest
from sparkwright.operations import disk_usage, proxies
from sparkwright.operations.changing import Commands, look, operation
from sparkwright.plan.changes import changes
from sparkwright.plan.plan import ServicePlan
from sparkwright.run import reaching
from sparkwright.run.installed import services_of, status_of, unreadable
from sparkwright.run.state import HostRun

#: Seconds between the doctor's two looks at the metrics.
_BETWEEN = 5
#: Samples of the GPU under load, one a second, and how long is waited for the load: the generator
#: takes 10 to 20 s to start.
_SAMPLES, _SECONDS = 15, 90
#: Seconds: 100 GB at 30 MB/s, the slowest disk worth serving from.
_HASHING = 3600


@operation()
def answered(question: Callable[[Host], Sequence[str]]) -> Commands:
    """Ask the host; what the question returns is wrong with it, and fails it."""
    yield from look(question)


def logged(
    host: Host, one: HostRun, *, services: tuple[str, ...] | None, lines: int, since: str | None
) -> dict[str, Any]:
    """The last lines of a host's services. One remote execution."""
    request = LogsRequest(services, one.settings.services_root, lines, since)
    found: dict[str, Any] = encode(ask(host, logs, request, LogsAnswer, timeout=90))
    return found


def compared(host: Host, one: HostRun) -> dict[str, Any]:
    """The host's status beside what is planned for it."""
    if not one.plan_known:
        answer = status_of(host, one, texts=False)
        return {**encode(answer), "planned": {}, "plan_known": False}
    seen = reaching.look(host, one)
    answer = status_of(host, one, texts=True)
    proxy = ["proxy"] if proxies.pending(one.proxies, one.proxy_files, seen) else []
    planned = {
        service.name: {
            "release": service.release,
            "tag": service.tag,
            "texts": {"compose.yaml": service.compose, service.unit: service.unit_text},
            "drift": [*changes(service, one.secrets, seen), *proxy],
        }
        for service in one.services
    }
    return {**encode(answer), "planned": planned, "plan_known": True}


def examined(host: Host, one: HostRun) -> dict[str, Any]:
    """What the doctor uses: symptoms, what is planned, and what preflight finds."""
    if not one.plan_known:
        status = status_of(host, one, texts=False)
        there = services_of(one, status)
        answer = _examination(
            host,
            one,
            (
                *map(_examined, there.values()),
                *(_without_record(one, name) for name in unreadable(one, status)),
            ),
        )
        planned = {name: _facts(service) for name, service in there.items()}
        return {**encode(answer), "planned": planned, "findings": []}
    asked = time.time()
    seen = reaching.look(host, one)
    findings = judge(one.desired, seen, now=(asked + time.time()) / 2)
    answer = _examination(host, one, tuple(map(_examined, one.services)))
    planned = {
        service.name: {**_facts(service), "corrupts": _corrupts(one.desired.catalog, decided)}
        for decided, service in one.desired.planned_services
    }
    return {**encode(answer), "planned": planned, "findings": data(findings)}


def _examined(service: Service) -> ExaminedService:
    gate = service.gate
    return ExaminedService(
        service.name, service.unit, gate.address, gate.port, service.home, service.secrets
    )


def _without_record(one: HostRun, name: str) -> ExaminedService:
    """A service of which no release says where it answers: asked at a port that nobody has."""
    home = f"{one.settings.services_root}/services/{name}"
    unit = f"sparkwright-{name}.service"
    return ExaminedService(name, unit, "127.0.0.1", 1, home, f"{home}/secrets.env")


def _examination(host: Host, one: HostRun, services: tuple[ExaminedService, ...]) -> Examination:
    request = ExaminationRequest(
        services,
        one.settings.models_root,
        one.settings.services_root,
        _BETWEEN,
        metric_names(),
    )
    return ask(host, doctor, request, Examination, timeout=120)


def _facts(service: Service) -> dict[str, Any]:
    return {
        "release": service.release,
        "tag": service.tag,
        "names": list(service.gate.served_names),
        "boot_seconds": service.gate.boot_seconds,
        "speculates": service.gate.speculates,
    }


def _corrupts(catalog: Catalog, service: ServicePlan) -> bool:
    return any(
        issue.id == "prefix-caching-corrupts" and service.image.tag in issue.tags
        for issue in catalog.images[service.image.image].issues
    )


def bench_facts(host: Host, one: HostRun, *, under_load: bool) -> dict[str, Any]:
    """What serves, and on what; or the GPU while a service works."""
    request = BenchRequest(
        services=tuple(
            BenchService(
                service.name,
                service.home,
                service.gate.address,
                service.gate.port,
                engine(service.gate.engine).probes.version,
            )
            for service in one.services
        ),
        samples=_SAMPLES if under_load else 0,
        seconds=_SECONDS,
        state=f"{one.settings.services_root}/state",
        metric_names=metric_names(),
    )
    answer = ask(host, bench, request, BenchAnswer, timeout=_SECONDS + 60)
    planned = {service.name: service.release for service in one.services}
    return {**encode(answer), "planned": planned}


def deep_smoke(host: Host, one: HostRun) -> dict[str, Any]:
    """Test the services for everything that the recipes promise; without a plan, for what their
    releases do."""
    services, sleeping = {service.name: service for service in one.services}, set[str]()
    if one.desired.plan.groups or not one.plan_known:
        status = status_of(host, one, texts=False)
        services, sleeping = services_of(one, status), set(status.sleeping)
        lacking = {name for name, each in services.items() if each.gate.engine not in ENGINES}
        if not one.plan_known and (lacking := {*lacking, *unreadable(one, status)}):
            raise HostError(
                f"{', '.join(sorted(lacking))}: its release does not say what it must answer"
            )
    services = {
        name: service
        for name, service in services.items()
        # The head of its cluster answers for a follower.
        if name not in sleeping and not service.follower
    }
    plans = {decided.name: decided for decided in one.desired.plan.services}
    requests = {
        name: deep_request(plans[name], service.gate, one.desired.catalog)
        if one.plan_known
        else unplanned_request(service.gate)
        for name, service in services.items()
    }
    planned = {
        name: {"planned": service.release, "recipe": service.recipe}
        for name, service in services.items()
    }
    answer = ask(
        host,
        deep,
        DeepRequests(tuple(requests.values())),
        dict[str, DeepAnswer],
        timeout=sum(map(deep_seconds, requests.values())) + 60,
    )
    of_each("sparkwright-deep", requests, answer)
    return {name: {**encode(result), **planned[name]} for name, result in answer.items()}


def disk_usage_request(one: HostRun) -> DiskUsageRequest:
    """What the plan needs of what lies on the host's disk."""
    return DiskUsageRequest(
        models_root=one.settings.models_root,
        services_root=one.settings.services_root,
        planned=(
            *(model.directory for model in one.desired.models),
            *(image.name for image in one.desired.images),
            *(image.store for image in one.desired.images),
        ),
        keep_releases=one.settings.keep_releases,
        plan_known=one.plan_known,
    )


def hashed_again(host: Host, one: HostRun) -> list[str]:
    """Hash every file of the planned models, or without a plan of those that have a receipt; what
    is wrong, as lines."""
    directories = tuple(model.directory for model in one.desired.models)
    if not one.plan_known:
        usage = disk_usage.listed(host, disk_usage_request(one))
        directories = tuple(
            thing.path
            for thing in usage.things
            if thing.kind == "model" and thing.fault != "has no receipt"
        )
    request = VerifyRequest(directories)
    answer = ask(host, verify_models, request, dict[str, Verified], timeout=_HASHING)
    of_each("sparkwright-verify-models", request.directories, answer)
    wrong: list[str] = []
    for directory, found in answer.items():
        size, seconds = found.bytes / 1e9, max(found.seconds, 1e-3)
        host.log(
            f"{directory}: {found.files} files, {size:.2f} GB in {seconds:.1f} s "
            f"({size / seconds:.2f} GB/s), {len(found.wrong)} wrong"
        )
        wrong += [f"{directory}: {fault}" for fault in found.wrong]
    if wrong:
        wrong.append("deploy again: what is wrong is fetched anew, and the rest is kept")
    return wrong
