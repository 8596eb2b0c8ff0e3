"""A service's findings, from systemd, Docker and the engine's own counters."""

from collections.abc import Iterator

from sparkwright.checks.service.facts import Facts, Serving, services
from sparkwright.checks.service.watch import compiling, drafting, still
from sparkwright.findings import thresholds
from sparkwright.findings.check import Symptom, check, each
from sparkwright.host.lib import metrics
from sparkwright.text.marks import stopped


@each(services, "stopped", "ranks-missing", "restarts", "booting", "unit-not-read")
def _unit(service: Serving) -> Iterator[Symptom]:
    seen, seconds, planned = service.seen, service.uptime, service.planned
    unit, mark, state = seen.unit, seen.stopped, seen.unit.get("ActiveState")
    if planned and state == "inactive":
        absent = "" if unit.get("LoadState") == "loaded" else ", its unit does not exist"
        who = f": {stopped(mark, service.facts.now)}" if mark and mark.holds(unit) else ""
        yield Symptom("stopped", absent=absent, who=who)
    if state == "active" and seen.waits:
        yield Symptom("ranks-missing", observed=seen.waits)
    if service.restarts and state != "failed":
        yield Symptom("restarts", restarts=service.restarts)
    starting = state == "active" and seconds and seen.health.code is None
    if planned and starting and seconds <= planned.boot_seconds:
        yield Symptom("booting", minutes=seconds / 60)
    if unit.get("NeedDaemonReload") == "yes":
        yield Symptom("unit-not-read")


@each(services, "gpu-lost-in-container")
def _no_gpu(service: Serving) -> Iterator[Symptom]:
    inside = service.seen.gpu_inside
    if inside is None or (inside.code == 0 and "GPU" in inside.out):
        return
    message = (inside.err or inside.out).strip()
    # An image without nvidia-smi proves nothing.
    if "not found" not in message and "no such file" not in message.lower():
        yield Symptom(message=message or "no GPU")


@each(
    services, "other-release", "container-killed", "container-without-gpu", "weights-are-links",
    "weights-are-lfs-pointers",
)  # fmt: skip
def _container(service: Serving) -> Iterator[Symptom]:
    container, planned = service.seen.container, service.planned
    if container is None:
        return
    if planned and container.running and container.release != planned.release:
        yield Symptom("other-release", runs=container.release, planned=planned.release)
    if container.oom_killed or (not container.running and container.exit_code == 137):
        how = "by its memory limit" if container.oom_killed else "exit code 137"
        yield Symptom("container-killed", how=how)
    if not container.gpu:
        yield Symptom("container-without-gpu")
    for mount in container.mounts:
        faults = {"weights-are-links": mount.links, "weights-are-lfs-pointers": mount.pointers}
        for check_id, names in faults.items():
            if names:
                yield Symptom(check_id, mount=mount, names=", ".join(names[:3]))
    yield from service.engine.seen_faults(service.arguments, service.facts.unified)


@check("endless-restarts")
def _loops(facts: Facts) -> Iterator[Symptom]:
    for container in (*(seen.container for seen in facts.services.values()), *facts.others):
        policy = container.restart_policy if container else ""
        if container and policy in ("always", "unless-stopped") and container.restarts >= 3:
            yield Symptom(container=container)


@each(services, "acceptance-low")
def _low(service: Serving) -> Iterator[Symptom]:
    limits, looks = thresholds.limits(), drafting(service)
    if not looks:
        return
    drafted = looks[-1][metrics.DRAFTED] - looks[0][metrics.DRAFTED]
    accepted = looks[-1][metrics.ACCEPTED] - looks[0][metrics.ACCEPTED]
    if drafted >= limits["drafted"] and limits["collapsed"] <= accepted / drafted < limits["low"]:
        yield Symptom(share=accepted / drafted, drafted=drafted)


@each(services, "first-request", "no-drafts", "preemptions")
def _counters(service: Serving) -> Iterator[Symptom]:
    if still(service) and compiling(service):
        yield Symptom("first-request", seconds=service.uptime)
    if service.planned and service.planned.speculates and service.seen.metrics:
        last = service.seen.metrics[-1]
        drafted = last[metrics.DRAFTED] or last[metrics.DRAFTS]  # SGLang counts only drafts
        if last[metrics.GENERATED] > 100 and not drafted:
            yield Symptom("no-drafts", generated=last[metrics.GENERATED])
    if risen := service.between(metrics.PREEMPTED):
        yield Symptom("preemptions", requests=risen)


@each(services, "wrong-answer")
def _answers(service: Serving) -> Iterator[Symptom]:
    # The first request after a start may take minutes.
    young = bool(service.seen.metrics) and compiling(service)
    if service.seen.faults and not young:
        yield Symptom(faults="; ".join(service.seen.faults))


@each(services, "queue-saturated")
def _queue(service: Serving) -> Iterator[Symptom]:
    looks, slots = service.seen.metrics, service.limits.sequences
    if len(looks) < 2 or still(service):
        return
    count = service.between(metrics.FIRST_TOKEN_COUNT)
    total = service.between(metrics.FIRST_TOKEN_SUM)
    seconds = total / count if count and total else 0.0
    waiting = all(look[metrics.WAITING] > 0 for look in looks)
    full = slots is not None and looks[-1][metrics.RUNNING] >= slots
    if waiting and (full or seconds > thresholds.limits()["queue_seconds"]):
        yield Symptom(
            running=looks[-1][metrics.RUNNING],
            waiting=looks[-1][metrics.WAITING],
            seconds=f", {seconds:.1f} s to the first token" if seconds else "",
        )


@each(services, "answers-cut", "clients-give-up")
def _ended(service: Serving) -> Iterator[Symptom]:
    """Requests that ended at their length limit, or were aborted; sparkwright's own requests, which
    limit their length, are not counted.
    """
    limits, prefix = thresholds.limits(), f"{metrics.ENDED}:"
    last = service.seen.metrics[-1].values if service.seen.metrics else {}
    short = last.get(metrics.SHORT, 0.0)
    total = sum(value for name, value in last.items() if name.startswith(prefix)) - short
    cut, aborted = last.get(f"{prefix}length", 0.0) - short, last.get(f"{prefix}abort", 0.0)
    if total >= limits["ended"] and cut > limits["cut"] * total:
        yield Symptom(requests=cut, total=total)
    if total >= limits["ended"] and aborted > limits["abandoned"] * total:
        yield Symptom("clients-give-up", requests=aborted, total=total)
