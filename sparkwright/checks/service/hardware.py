"""GPU and kernel: heat, power, Xids, the out-of-memory killer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkwright.checks.service.facts import Facts
from sparkwright.findings.check import Symptom, check

#: What the commonest Xids are, and what to do about them (NVIDIA's Xid catalogue).
_APPLICATION = "sudo systemctl restart UNIT; if it comes again, the newest tag and drafter"
_RESET = "restart the services; if it comes again, sudo reboot"
_REBOOT = "sudo reboot; power off and on if it stays away"
_XIDS: dict[int, tuple[str, str]] = {
    13: ("a kernel made an invalid access or operation", _APPLICATION),
    31: ("a kernel touched memory that is not its own (cudaErrorIllegalAddress)", _APPLICATION),
    43: ("a program's channel was stopped after its own fault", _APPLICATION),
    45: ("channels were taken down after an earlier fault, which is the one to look at", _RESET),
    46: ("the GPU stopped processing", _REBOOT),
    48: ("double-bit memory error", "sudo reboot; have the board replaced if it comes again"),
    62: ("the GPU's power and clock controller halted", _REBOOT),
    63: ("a memory row was retired", "sudo reboot so that it is remapped"),
    64: ("a memory row could not be retired", "have the board replaced"),
    79: ("the GPU has fallen off the bus: power, heat or its seat in the slot", _REBOOT),
    94: ("a contained memory error: the program that had it is to be started again", _APPLICATION),
    95: ("an uncontained memory error", _REBOOT),
    109: ("switching between programs took too long", _RESET),
    119: ("the GPU's system processor did not answer the driver", _REBOOT),
    120: ("the GPU's system processor failed", _REBOOT),
    154: ("the driver asks for a reset of the GPU", _REBOOT),
}
_XID = re.compile(r"NVRM: Xid \([^)]*\): (\d{1,9})")
#: NVRM … [NV_ERR_NO_MEMORY] (0x00000051)
_NO_MEMORY = r"NVRM: .*NV_ERR_NO_MEMORY"
_KILLED = re.compile(r"Killed process \d+ \(([^)]+)\)")


@check("driver-half-updated")
def _mismatch(facts: Facts) -> Iterator[Symptom]:
    lines = [facts.gpu.said, *facts.kernel]
    found = next((line for line in lines if re.search(r"version mismatch|API mismatch", line)), "")
    if found:
        yield Symptom(found.splitlines()[0])


@check("xid")
def _xids(facts: Facts) -> Iterator[Symptom]:
    last: dict[int, str] = {}
    for line in facts.kernel:
        if match := _XID.search(line):
            last[int(match[1])] = line.strip()
    # 45 is the clearing up after another one.
    for number, line in sorted(last.items()):
        if number == 45 and len(last) > 1:
            continue
        cause, remedy = _XIDS.get(
            number, ("see NVIDIA's Xid catalogue for this number", "sudo reboot if it comes again")
        )
        yield Symptom(line, remedy=remedy, reason=f"Xid {number}: {cause}")


@check("oom-killer")
def _killer(facts: Facts) -> Iterator[Symptom]:
    killed = [match[1] for line in facts.kernel if (match := _KILLED.search(line))]
    if killed:
        names = ", ".join(dict.fromkeys(killed))
        yield Symptom(f"{len(killed)} processes killed within a day: {names}")


def _line(pattern: str, facts: Facts) -> Iterator[Symptom]:
    found = [line.strip() for line in facts.kernel if re.search(pattern, line, re.IGNORECASE)]
    if found:
        yield Symptom(f"{found[-1]} ({len(found)} lines within a day)")


@check("gpu-memory-refused")
def _refused_memory(facts: Facts) -> Iterator[Symptom]:
    yield from _line(_NO_MEMORY, facts)


@check("unclean-end")
def _unclean_end(facts: Facts) -> Iterator[Symptom]:
    lines = facts.boot_before
    for pattern, reason in (
        (_NO_MEMORY, "the driver was refused memory, which comes before a Spark that hangs"),
        (_XID.pattern, "the driver had reported a fault of the GPU"),
        (_KILLED.pattern, "the host had run out of memory"),
        ("", ""),
    ):
        found = [line.strip() for line in lines if re.search(pattern, line)]
        if found:
            observed = f"the boot before ended without a shutdown, after: {found[-1]}"
            yield Symptom(observed, reason=reason)
            return


@check("cpu-heat")
def _cpu_heat(facts: Facts) -> Iterator[Symptom]:
    yield from _line(r"temperature above threshold|critical temperature|thermal.*throttl", facts)


@check("disk-errors")
def _disk_errors(facts: Facts) -> Iterator[Symptom]:
    yield from _line(r"I/O error|EXT4-fs error|nvme\S*: .*(timeout|reset|abort)", facts)
