"""systemd and Docker on a service: whether it runs, how, and from what."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sparkwright.checks.service.facts import Facts
from sparkwright.engines.vllm.gb10 import MOST_ON_GB10, SAFE_BATCH
from sparkwright.findings.check import Symptom, check
from sparkwright.host.doctor import ContainerSeen
from sparkwright.host.watch import thresholds
from sparkwright.text.marks import stopped


def _containers(facts: Facts) -> Iterator[tuple[str, ContainerSeen]]:
    for name, service, _ in facts.each():
        if service.container is not None:
            yield name, service.container


@check("stopped")
def _stopped(facts: Facts) -> Iterator[Symptom]:
    for name, service, planned in facts.each():
        state = service.unit.get("ActiveState")
        if planned and state == "inactive":
            where = "" if service.unit.get("LoadState") == "loaded" else ", its unit is not there"
            mark = service.stopped
            who = f": {stopped(mark, facts.now)}" if mark and mark.holds(service.unit) else ""
            yield Symptom(f"the unit is {state}{where}{who}", service=name)


@check("ranks-missing")
def _ranks(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        if service.active and service.waits:
            yield Symptom(service.waits, service=name)


@check("restarts")
def _restarts(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        if service.restarts and service.unit.get("ActiveState") != "failed":
            yield Symptom(f"systemd has started it again {service.restarts} times", service=name)


@check("container-killed")
def _oom_killed(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        if container.oom_killed or (not container.running and container.exit_code == 137):
            how = "by its memory limit" if container.oom_killed else "exit code 137"
            yield Symptom(f"the container was killed ({how})", service=name)


@check("gpu-lost-in-container")
def _no_gpu(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        inside = service.gpu_inside
        if inside is None or (inside.code == 0 and "GPU" in inside.out):
            continue
        said = (inside.err or inside.out).strip()
        # An image without nvidia-smi proves nothing.
        if "not found" in said or "no such file" in said.lower():
            continue
        yield Symptom(f"nvidia-smi in the container: {said or 'no GPU'}", service=name)


@check("container-without-gpu")
def _no_device(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        if not container.gpu:
            yield Symptom("the container was started without a GPU", service=name)


@check("endless-restarts")
def _loops(facts: Facts) -> Iterator[Symptom]:
    everyone = [container for _, container in _containers(facts)] + list(facts.others)
    for container in everyone:
        if container.restart_policy in ("always", "unless-stopped") and container.restarts >= 3:
            yield Symptom(
                f"container {container.name} ({container.restart_policy}) was started again "
                f"{container.restarts} times"
            )


@check("weights-are-links")
def _links(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        for mount in container.mounts:
            if mount.links:
                yield Symptom(
                    f"{mount.source}: {', '.join(mount.links[:3])} lead out of it", service=name
                )


@check("weights-are-lfs-pointers")
def _pointers(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        for mount in container.mounts:
            if mount.pointers:
                yield Symptom(f"{mount.source}: {', '.join(mount.pointers[:3])}", service=name)


@check("gb10-memory-share")
def _share(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        share = container.number("gpu_memory_utilization")
        if facts.unified and share is not None and share > MOST_ON_GB10:
            yield Symptom(f"it runs with --gpu-memory-utilization {share:g}", service=name)


@check("gb10-batched-tokens")
def _batched(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        batched = container.number("max_num_batched_tokens")
        if facts.unified and batched is not None and batched > SAFE_BATCH:
            yield Symptom(f"it runs with --max-num-batched-tokens {batched:.0f}", service=name)


@check("gb10-sequences")
def _sequences(facts: Facts) -> Iterator[Symptom]:
    limit = thresholds.THRESHOLDS.gb10_sequences
    for name, container in _containers(facts):
        seqs = container.number("max_num_seqs")
        override = {"num_gpu_blocks_override", "kv_cache_memory_bytes"} & set(container.arguments)
        if facts.unified and seqs is not None and seqs >= limit and override:
            yield Symptom(
                f"it runs with --max-num-seqs {seqs:.0f} and --{min(override)}", service=name
            )


@check("dflash-without-limits")
def _without_limits(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        try:
            config = json.loads(container.arguments.get("speculative_config", ""))
        except ValueError:
            continue
        missing = [
            word
            for word in ("max_num_seqs", "max_num_batched_tokens")
            if word not in container.arguments
        ]
        if isinstance(config, dict) and config.get("method") == "dflash" and missing:
            yield Symptom(f"it runs DFlash without {' and '.join(missing)}", service=name)


@check("other-release")
def _other_release(facts: Facts) -> Iterator[Symptom]:
    for name, service, planned in facts.each():
        container = service.container
        if planned and container and container.running and container.release != planned.release:
            yield Symptom(
                f"release {container.release} runs, {planned.release} is planned", service=name
            )


@check("unit-not-read")
def _reload(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        if service.unit.get("NeedDaemonReload") == "yes":
            yield Symptom("the unit's file was changed after systemd read it", service=name)
