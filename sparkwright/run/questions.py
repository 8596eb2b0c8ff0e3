"""Requests to hosts that change nothing: their services, faults and disk usage."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import ModuleType
from typing import TypeVar

import gevent
from pyinfra.api.host import Host

from sparkwright.catalog import Catalog
from sparkwright.checks.fabric.groups import FabricLook
from sparkwright.checks.host.judge import judge
from sparkwright.checks.service.facts import Facts, Planned
from sparkwright.checks.smoke.deep import deep_request, deep_seconds, unplanned_request
from sparkwright.checks.smoke.verdict import DeepResult
from sparkwright.engines import ENGINES, metric_names
from sparkwright.facts import hooks
from sparkwright.facts.answers import HostError, of_each
from sparkwright.facts.asking import ask
from sparkwright.facts.fabric import state_of
from sparkwright.facts.memory import memory
from sparkwright.findings.finding import errors
from sparkwright.host import doctor, load, observe, verify_models
from sparkwright.host.disk_usage import DiskUsage, DiskUsageRequest
from sparkwright.host.proxy import keys
from sparkwright.host.service import Service
from sparkwright.host.smoke import deep
from sparkwright.host.verify_models import Verified
from sparkwright.operations import disk_usage, proxies
from sparkwright.operations.lib import locks
from sparkwright.plan.changes import changes
from sparkwright.plan.plan import ServicePlan
from sparkwright.plan.service import engine_at
from sparkwright.results.status import Deployment
from sparkwright.results.status import Planned as PlannedService
from sparkwright.run.ending import service_row
from sparkwright.run.observation import look, services_of, status_of, unreadable
from sparkwright.run.state import HostRun

T = TypeVar("T")
#: Timeout in seconds for one sample of the load; nvidia-smi gets 10 of these seconds, and each
#: service's metrics get 5.
_LOOK = 20
#: Seconds between two checks whether an answer is needed.
_IDLE = 0.25
#: Seconds between the doctor's two samples of the metrics.
_BETWEEN = 5
#: Timeout in seconds for hashing: 100 GB at 30 MB/s, the speed of the slowest useful disk.
_HASHING = 3600


def answered(
    program: ModuleType, request: Callable[[HostRun], object], answer: type[T], timeout: float = 90
) -> Callable[[Host, HostRun], T]:
    """Return a query that a program on each host answers.

    Args:
        request: function that returns the program's request for a host's part of the run.
        answer: the record that the program returns.
        timeout: seconds until a host counts as lost.
    """
    return partial(_answer, program=program, request=request, answer=answer, timeout=timeout)


def _answer(
    host: Host, run: HostRun, *, program: ModuleType, request: Callable[[HostRun], object],
    answer: type[T], timeout: float,
) -> T:  # fmt: skip
    return ask(host, program, request(run), answer, timeout=timeout)


def deployment(host: Host, run: HostRun) -> Deployment:
    """Return the status of the host together with its plan."""
    if not run.plan_known:
        return Deployment(**vars(status_of(host, run, texts=False)), plan_known=False)
    with ThreadPoolExecutor(1) as pool:  # both requests run at the same time
        looked = pool.submit(look, host, run)
        status = status_of(host, run, texts=True)
        observation = looked.result()
    proxy = ["proxy"] if proxies.pending(run.proxies, run.proxy_files, observation) else []
    planned = {}
    for decided, service in run.desired.planned_services:
        row = service_row(run, decided, service)
        planned[service.name] = PlannedService(
            release=service.release,
            tag=service.tag,
            texts={"compose.yaml": service.compose, service.unit: service.unit_text},
            drift=(*changes(service, run.secrets, observation), *proxy),
            url="" if row.head else f"{row.url}/v1",
            served_names=row.served_names,
        )
    differs = any(each.drift for each in planned.values())
    refused = _refusals(run, observation) if differs else ()
    return Deployment(**vars(status), planned=planned, refused=refused)


def _refusals(run: HostRun, observation: observe.Observation) -> tuple[str, ...]:
    """Return the ids of preflight's errors for which the next deploy would refuse the host.

    The result is empty if the next deploy bootstraps the host first.
    """
    if run.settings.bootstrap:
        return ()
    findings = judge(run.desired, observation, now=time.time())
    return tuple(dict.fromkeys(finding.id for finding in errors(findings)))


def facts(host: Host, run: HostRun) -> Facts:
    """Return the facts for the doctor: symptoms, the plan, and findings of preflight."""
    if not run.plan_known:
        status = status_of(host, run, texts=False)
        services = services_of(run, status)
        examination = _examination(host, run, services.values(), unreadable(run, status))
        planned = {name: _planned(service) for name, service in services.items()}
        return Facts.of(examination, planned)
    asked = time.time()
    observation = look(host, run)
    findings = judge(run.desired, observation, now=(asked + time.time()) / 2)
    examination = _examination(host, run, run.services)
    planned = {
        service.name: _planned(service, corrupts=_corrupts(run.desired.catalog, decided))
        for decided, service in run.desired.planned_services
    }
    return Facts.of(examination, planned, tuple(findings))


def _examination(
    host: Host, run: HostRun, services: Iterable[Service], unknown: Iterable[str] = ()
) -> doctor.Examination:
    models, root = run.settings.models_root, run.settings.services_root
    engines = {each.name: (each.gate.address, each.gate.port) for each in services}
    # The releases of these services name no port, so the request names an unused port.
    engines |= dict.fromkeys(unknown, ("127.0.0.1", 1))
    request = doctor.ExaminationRequest(engines, models, root, _BETWEEN, metric_names())
    return ask(host, doctor, request, doctor.Examination, timeout=120)


def _planned(service: Service, *, corrupts: bool = False) -> Planned:
    gate = service.gate
    return Planned(service.release, gate.boot_seconds, gate.speculates, corrupts, gate.engine)


def _corrupts(catalog: Catalog, service: ServicePlan) -> bool:
    return any(
        issue.id == "prefix-caching-corrupts" and service.image.tag in issue.tags
        for issue in catalog.images[service.image.image].issues
    )


def fabric(host: Host, run: HostRun) -> FabricLook:
    """Return the host's part of the fabric, and the image that serves there."""
    image = run.services[0].image if run.services else None
    addresses = run.settings.fabric_addresses
    clusters = (cluster.hosts for cluster in run.settings.clusters.values()
                if cluster.fabric == "cx7" and host.name in cluster.hosts)  # fmt: skip
    return FabricLook(
        state=state_of(host, image),
        image=image,
        cluster=tuple(next(clusters, ())),
        addresses=addresses if addresses and host.name in addresses.hosts else None,
    )


def known_keys(host: Host, run: HostRun) -> tuple[str, ...]:
    """Return the hash and the name of each key that the host's proxies accept. One remote
    execution.
    """
    return _keys(host, run, None)


def renewed_keys(host: Host, run: HostRun) -> tuple[str, ...]:
    """Write the plan's keys into the proxies under the host's lock; return the keys' hashes and
    names.
    """
    if run.proxies is None:
        return ()
    locks.take(host)
    text, _ = run.proxy_files[run.proxies.keys]
    answer = _keys(host, run, text)
    memory(host).forget()
    return answer


def _keys(host: Host, run: HostRun, text: str | None) -> tuple[str, ...]:
    if run.proxies is None:
        return ()
    proxy = proxies.request({}, run.proxies, start=False)
    request = keys.KeysRequest(proxy=proxy, place=run.proxies.keys, text=text)
    return ask(host, keys, request, tuple[str, ...], timeout=60)


def used_disk(host: Host, run: HostRun) -> DiskUsage:
    """Return models, images and their parts on a host's disks."""
    return disk_usage.listed(host, disk_usage_request(run))


def deep_smoke(
    host: Host, run: HostRun, *, meant: Callable[[str, str], bool] = lambda *_: True
) -> dict[str, DeepResult]:
    """Test every ability that the recipes declare; without a plan, all abilities of releases."""
    services, sleeping = {service.name: service for service in run.services}, set[str]()
    if run.desired.plan.groups or not run.plan_known:
        status = status_of(host, run, texts=False)
        services, sleeping = services_of(run, status), set(status.sleeping)
        lacking = {name for name, each in services.items() if each.gate.engine not in ENGINES}
        lacking |= {*unreadable(run, status)}
        if not run.plan_known and lacking:
            names = ", ".join(sorted(lacking))
            raise HostError(f"{names}: the release has no expected answers to test against")
    # A follower is not tested, since the head of its cluster answers.
    services = {
        name: each
        for name, each in services.items()
        if name not in sleeping and not each.follower and meant(host.name, name)
    }
    plans = {decided.name: decided for decided in run.desired.plan.services}
    requests = {
        name: deep_request(plans[name], service.gate, run.desired.catalog)
        if run.plan_known
        else unplanned_request(service.gate)
        for name, service in services.items()
    }
    seconds = sum(map(deep_seconds, requests.values())) + 60
    answer = ask(host, deep, tuple(requests.values()), dict[str, deep.DeepAnswer], timeout=seconds)
    of_each("sparkwright-deep", requests, answer)
    return {
        name: DeepResult(
            **vars(result), planned=services[name].release, recipe=services[name].recipe
        )
        for name, result in answer.items()
    }


def disk_usage_request(run: HostRun) -> DiskUsageRequest:
    """Return the request for the host's disk usage, with the plan's models and images."""
    return DiskUsageRequest(
        models_root=run.settings.models_root,
        services_root=run.settings.services_root,
        planned=(
            *(model.directory for model in run.desired.models),
            *(image.name for image in run.desired.images),
            *(image.store for image in run.desired.images),
        ),
        keep_releases=run.settings.keep_releases,
        plan_known=run.plan_known,
    )


def hashed_again(host: Host, run: HostRun) -> list[str]:
    """Hash every file of the planned models, and return the faults as lines.

    Without a plan, hash all models that have a receipt.
    """
    directories = tuple(model.directory for model in run.desired.models)
    if not run.plan_known:
        things = disk_usage.listed(host, disk_usage_request(run)).things
        models = [thing for thing in things if thing.kind == "model"]
        directories = tuple(each.path for each in models if each.fault != "has no receipt")
    answer = ask(host, verify_models, directories, dict[str, Verified], timeout=_HASHING)
    of_each("sparkwright-verify-models", directories, answer)
    faults: list[str] = []
    for directory, verified in answer.items():
        size, seconds = verified.bytes / 1e9, max(verified.seconds, 1e-3)
        host.log(
            f"{directory}: {verified.files} files, {size:.2f} GB in {seconds:.1f} s "
            f"({size / seconds:.2f} GB/s), {len(verified.faults)} faults"
        )
        faults += [f"{directory}: {fault}" for fault in verified.faults]
    if faults:
        faults.append("deploy again: the deploy fetches damaged files and keeps the others")
    return faults


def follow(
    host: Host,
    run: HostRun,
    take: Callable[[T | HostError], None],
    *,
    question: Callable[[Host, HostRun], T],
    interval: float,
    count: int = 0,
    wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Send a host the same request repeatedly until the command ends.

    Args:
        take: function that gets each answer, or the reason for a failure.
        interval: seconds between two requests.
        count: number of requests; 0 for no limit.
        wanted: function that returns whether an answer is needed now; until then no request is
            sent.

    Raises:
        HostError: the last request had no answer.
    """
    asked = 0
    while True:
        while not wanted():
            gevent.sleep(_IDLE)
        began = time.monotonic()
        asked += 1
        try:
            _reconnect(host)
            take(question(host, run))
        except HostError as error:
            take(error)
            if asked == count:
                raise
        if asked == count:
            return
        gevent.sleep(max(0.0, began + interval - time.monotonic()))


def load_request(run: HostRun) -> load.LoadRequest:
    """Return the request for the load of a host's services."""
    services = [service for service in run.desired.plan.services if not service.follower]
    return load.LoadRequest(
        services={service.name: engine_at(service) for service in services},
        services_root=run.settings.services_root,
        metric_names=metric_names(),
    )


#: Question for a host's load. The request goes through standard input, since sudo logs every
#: command line.
current_load = answered(load, load_request, load.HostLoad, timeout=_LOOK)


def _reconnect(host: Host) -> None:
    """Connect to a host again if the connection was lost.

    Raises:
        HostError: the host can't be reached.
    """
    transport = hooks.transport_of(host)
    if transport is not None and not transport.is_active():
        host.disconnect()  # pyinfra keeps a lost connection until the disconnect
    if not host.connected:
        host.connect(show_errors=False)
    if not host.connected:
        raise HostError(memory(host).failure or "not reached")
    memory(host).failure = None
