"""systemd and Docker on a service: whether it runs, how, and from what."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sparkwright.checks.service import thresholds
from sparkwright.checks.service.check import Check, Symptom
from sparkwright.checks.service.facts import Facts
from sparkwright.engines.vllm.gb10 import SHARES
from sparkwright.findings.finding import Severity
from sparkwright.host.doctor import ContainerSeen
from sparkwright.text.marks import stopped


def _containers(facts: Facts) -> Iterator[tuple[str, ContainerSeen]]:
    for name, service, _ in facts.each():
        if service.container is not None:
            yield name, service.container


def _stopped(facts: Facts) -> Iterator[Symptom]:
    for name, service, planned in facts.each():
        state = service.unit.get("ActiveState")
        if planned and state == "inactive":
            where = "" if service.unit.get("LoadState") == "loaded" else ", its unit is not there"
            mark = service.stopped
            who = f": {stopped(mark, facts.now)}" if mark and mark.holds(service.unit) else ""
            yield Symptom(f"the unit is {state}{where}{who}", name)


def _ranks(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        if service.active and service.waits:
            yield Symptom(service.waits, name)


def _restarts(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        if service.restarts and service.unit.get("ActiveState") != "failed":
            yield Symptom(f"systemd has started it again {service.restarts} times", name)


def _oom_killed(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        if container.oom_killed or (not container.running and container.exit_code == 137):
            how = "by its memory limit" if container.oom_killed else "exit code 137"
            yield Symptom(f"the container was killed ({how})", name)


def _no_gpu(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        inside = service.gpu_inside
        if inside is None or (inside.code == 0 and "GPU" in inside.out):
            continue
        said = (inside.err or inside.out).strip()
        # An image without nvidia-smi proves nothing.
        if "not found" in said or "no such file" in said.lower():
            continue
        yield Symptom(f"nvidia-smi in the container: {said or 'no GPU'}", name)


def _no_device(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        if not container.gpu:
            yield Symptom("the container was started without a GPU", name)


def _loops(facts: Facts) -> Iterator[Symptom]:
    everyone = [container for _, container in _containers(facts)] + list(facts.others)
    for container in everyone:
        if container.restart_policy in ("always", "unless-stopped") and container.restarts >= 3:
            yield Symptom(
                f"container {container.name} ({container.restart_policy}) was started again "
                f"{container.restarts} times"
            )


def _links(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        for mount in container.mounts:
            if mount.links:
                yield Symptom(f"{mount.source}: {', '.join(mount.links[:3])} lead out of it", name)


def _pointers(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        for mount in container.mounts:
            if mount.pointers:
                yield Symptom(f"{mount.source}: {', '.join(mount.pointers[:3])}", name)


def _share(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        share = container.number("gpu_memory_utilization")
        if facts.unified and share is not None and share > thresholds.THRESHOLDS.gb10_share:
            yield Symptom(f"it runs with --gpu-memory-utilization {share:g}", name)


def _batched(facts: Facts) -> Iterator[Symptom]:
    for name, container in _containers(facts):
        batched = container.number("max_num_batched_tokens")
        if facts.unified and batched is not None and batched > thresholds.THRESHOLDS.gb10_batched:
            yield Symptom(f"it runs with --max-num-batched-tokens {batched:.0f}", name)


def _sequences(facts: Facts) -> Iterator[Symptom]:
    limit = thresholds.THRESHOLDS.gb10_sequences
    for name, container in _containers(facts):
        seqs = container.number("max_num_seqs")
        override = {"num_gpu_blocks_override", "kv_cache_memory_bytes"} & set(container.arguments)
        if facts.unified and seqs is not None and seqs >= limit and override:
            yield Symptom(f"it runs with --max-num-seqs {seqs:.0f} and --{min(override)}", name)


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
            yield Symptom(f"it runs DFlash without {' and '.join(missing)}", name)


def _other_release(facts: Facts) -> Iterator[Symptom]:
    for name, service, planned in facts.each():
        container = service.container
        if planned and container and container.running and container.release != planned.release:
            yield Symptom(f"release {container.release} runs, {planned.release} is planned", name)


def _reload(facts: Facts) -> Iterator[Symptom]:
    for name, service, _ in facts.each():
        if service.unit.get("NeedDaemonReload") == "yes":
            yield Symptom("the unit's file was changed after systemd read it", name)


CHECKS = (
    Check(
        "given-up", Severity.ERROR,
        "it ended three times in a row: endless loops have taken Sparks down, so systemd stops",
        "sparkwright rollback INVENTORY, or correct what its last lines name and deploy again",
        "NVIDIA's playbooks and reports of users; card of vllm-dflash, troubleshooting", vague=True,
    ),
    Check(
        "stopped", Severity.ERROR,
        "it was stopped by hand, or it was never started",
        "sparkwright start INVENTORY, or deploy again",
        "sparkwright", _stopped, vague=True,
    ),
    Check(
        "ranks-missing", Severity.ERROR,
        "the ranks of a cluster serve together or not at all: one is off, its cable is out, "
        "or its engine does not start",
        "doctor and status of the host that is named; ping it over the cluster's interface; sudo "
        "journalctl -u UNIT there",
        "sparkwright", _ranks,
    ),
    Check(
        "restarts", Severity.WARNING,
        "it ended and was started again: its last lines before that are the reason",
        "sudo journalctl -u UNIT; the release before: sparkwright rollback INVENTORY",
        "NVIDIA's playbooks and reports of users", _restarts, vague=True,
    ),
    Check(
        "container-killed", Severity.ERROR,
        "it was killed by the kernel or by hand: on a Spark most often for memory",
        "gpu_memory_utilization: 0.80 or less, fewer sidecars; sudo journalctl -k names it",
        "card of vllm-dflash, troubleshooting; NVIDIA's playbooks and reports of "
        "users", _oom_killed,
    ),
    Check(
        "gpu-lost-in-container", Severity.ERROR,
        "the GPU was taken from the running container, as a daemon-reload does where systemd "
        "manages cgroups",
        "sudo systemctl restart UNIT",
        "NVIDIA's playbooks and reports of users", _no_gpu,
    ),
    Check(
        "container-without-gpu", Severity.ERROR,
        "it was started by hand without --gpus all",
        "deploy again: the compose file asks for every GPU",
        "NVIDIA's playbooks and reports of users", _no_device,
    ),
    Check(
        "endless-restarts", Severity.ERROR,
        "Docker's own restart policy turns a bad start into a loop without end; about 35 rounds "
        "took a Spark down until its power was cut",
        "docker update --restart=no NAME && docker stop NAME; systemd owns restarts",
        "NVIDIA's playbooks and reports of users", _loops,
    ),
    Check(
        "weights-are-links", Severity.ERROR,
        "links into a cache outside of the mounted directory can't be followed in the container",
        "deploy again: real files are fetched or linked hard",
        "card of vllm-ultimate-dgx-spark, drafter materialization note; NVIDIA's playbooks and "
        "reports of users", _links,
    ),
    Check(
        "weights-are-lfs-pointers", Severity.ERROR,
        "git clone without LFS leaves pointers of some hundred bytes instead of weights",
        "deploy again, or git lfs pull in that directory",
        "card of vllm-ultimate-dgx-spark, 'Why these flags'; NVIDIA's playbooks and reports of "
        "users", _pointers,
    ),
    Check(
        "gb10-memory-share", Severity.WARNING,
        "CPU and GPU share one pool: above 0.88 a Spark thrashes instead of serving",
        f"gpu_memory_utilization: {SHARES}",
        "card of vllm-ultimate-dgx-spark, recipe A; NVIDIA's playbooks and reports of "
        "users", _share,
    ),
    Check(
        "gb10-batched-tokens", Severity.WARNING,
        "65536 batched tokens have hung Sparks",
        "max_num_batched_tokens: 32768",
        "NVIDIA's playbooks and reports of users", _batched,
    ),
    Check(
        "gb10-sequences", Severity.WARNING,
        "64 sequences with a KV cache set by hand froze a Spark",
        "max_num_seqs: 16, and let vLLM size the cache",
        "NVIDIA's playbooks and reports of users", _sequences,
    ),
    Check(
        "dflash-without-limits", Severity.WARNING,
        "without them the scheduler can compute a negative budget, and the next start fails",
        "max_num_seqs: 16 and max_num_batched_tokens: 32768",
        "card of Qwen3.6-35B-A3B-heretic-NVFP4, quickstart", _without_limits,
    ),
    Check(
        "other-release", Severity.WARNING,
        "a rollback, a switch that was taken back, or a change by hand",
        "sparkwright history INVENTORY says which; deploying restores the plan's",
        "sparkwright", _other_release,
    ),
    Check(
        "unit-not-read", Severity.WARNING,
        "the unit was changed by hand",
        "deploy again; do not reload systemd while a container serves",
        "NVIDIA's playbooks and reports of users", _reload,
    ),
)  # fmt: skip
