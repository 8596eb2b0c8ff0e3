"""Checks of the host: disks, memory, Docker, fetches, links between Sparks, GPU and kernel."""

import re
from collections.abc import Iterator

from sparkwright.checks.service.facts import Facts
from sparkwright.findings import thresholds
from sparkwright.findings.check import Symptom, check
from sparkwright.host.lib.memory import cma_over
from sparkwright.text import marks, sizes

#: Largest swappiness in use on Sparks (timothystewart6/ubuntu-gb10).
_SWAPPINESS = 10
_XID = re.compile(r"NVRM: Xid \([^)]*\): (\d{1,9})")
_KILLED = re.compile(r"Killed process \d+ \(([^)]+)\)")
_COMPILERS = {"cicc", "nvcc", "ptxas", "cudafe++"}
#: Id of a check, or case of ``unclean-end`` -> pattern of a line in the kernel's log.
_LINES = {
    "gpu-memory-refused": r"NVRM: .*NV_ERR_NO_MEMORY",  # NVRM … [NV_ERR_NO_MEMORY] (0x00000051)
    "cpu-heat": r"temperature above threshold|critical temperature|thermal.*throttl",
    "disk-errors": r"I/O error|EXT4-fs error|nvme\S*: .*(timeout|reset|abort)",
}
_LAST = {
    "memory-refused": _LINES["gpu-memory-refused"],
    "xid": _XID.pattern,
    "killed": _KILLED.pattern,
    "": "",
}


@check("maintenance", "docker-silent", "fetch-stuck", "spark-link-slow")
def _host(facts: Facts) -> Iterator[Symptom]:
    limits = thresholds.limits()
    if facts.maintenance:
        observed = marks.in_maintenance(facts.maintenance, facts.now)
        yield Symptom("maintenance", observed=observed)
    if facts.docker is None and facts.services:
        yield Symptom("docker-silent")
    for unit, seconds in facts.fetches.items():
        if seconds > limits["fetch_idle_seconds"]:
            yield Symptom("fetch-stuck", unit=unit, minutes=seconds / 60)
    for name, speed in facts.ports.items():
        if facts.unified and 0 < speed < limits["link_mbps"]:
            yield Symptom("spark-link-slow", name=name, speed=speed)


@check("memory-pressure", "disk-pressure", "memory-scarce")
def _pressure(facts: Facts) -> Iterator[Symptom]:
    limits, size = thresholds.limits(), facts.memory
    memory = facts.pressure.get("memory", {}).get("some", 0.0)
    swapped = (size.get("SwapTotal", 0) - size.get("SwapFree", 0)) / sizes.GIB
    if memory >= limits["pressure"]:
        yield Symptom(share=memory, swap=f", {swapped:.1f} GiB in swap" if swapped > 1 else "")
    disks = facts.pressure.get("io", {}).get("full", 0.0)
    if disks >= limits["disk_pressure"]:
        yield Symptom("disk-pressure", share=disks)
    available = size.get("MemAvailable")
    if available is not None and available < limits["memory_least_gib"] * sizes.GIB:
        total = size.get("MemTotal", 0) / sizes.GIB
        yield Symptom("memory-scarce", available=available / sizes.GIB, total=total)


@check("swap-on-unified-memory", "desktop-on-unified-memory", "kernel-handover")
def _unified(facts: Facts) -> Iterator[Symptom]:
    size = facts.memory.get("SwapTotal", 0) / sizes.GIB
    if facts.unified and size and (facts.swappiness or 0) > _SWAPPINESS:
        yield Symptom(size=size, swappiness=facts.swappiness)
    if facts.unified and facts.desktop:
        yield Symptom("desktop-on-unified-memory")
    if facts.unified and (over := cma_over(facts.memory)):
        yield Symptom("kernel-handover", over=over / sizes.GIB)


@check("driver-half-updated", "xid", "oom-killer", *_LINES)
def _kernel(facts: Facts) -> Iterator[Symptom]:
    """Faults in the last day of the kernel's log, and in the driver's answer."""
    mismatch = re.compile(r"version mismatch|API mismatch")
    for line in filter(mismatch.search, (facts.gpu.message, *facts.kernel)):
        yield Symptom("driver-half-updated", observed=line.splitlines()[0])
        break
    last = {int(match[1]): line for line in facts.kernel if (match := _XID.search(line))}
    for number, line in sorted(last.items()):
        if number != 45 or len(last) == 1:  # Xid 45 only follows another error
            yield Symptom("xid", str(number), observed=line.strip(), number=number)
    killed = [match[1] for line in facts.kernel if (match := _KILLED.search(line))]
    if killed:
        names = ", ".join(dict.fromkeys(killed))
        case = "compiler" if _COMPILERS & set(killed) else ""
        yield Symptom("oom-killer", case, count=len(killed), names=names)
    for id_, pattern in _LINES.items():
        lines = [line for line in facts.kernel if re.search(pattern, line, re.IGNORECASE)]
        if lines:
            yield Symptom(id_, observed=f"{lines[-1].strip()} ({len(lines)} lines within a day)")


@check("unclean-end")
def _unclean_end(facts: Facts) -> Iterator[Symptom]:
    for case, pattern in _LAST.items():
        lines = [line.strip() for line in facts.boot_before if re.search(pattern, line)]
        if lines:
            yield Symptom("unclean-end", case, line=lines[-1])
            return
