"""What GPU and kernel tell: heat, power, Xids, the out-of-memory killer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkwright.doctor.check import Check, Sight
from sparkwright.doctor.facts import Facts
from sparkwright.doctor.thresholds import HEAT, LIMITS, POWER_BRAKE, SLOWDOWN
from sparkwright.findings.finding import Severity

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
_XID = re.compile(r"NVRM: Xid \([^)]*\): (\d+)")
_KILLED = re.compile(r"Killed process \d+ \(([^)]+)\)")


def _number(text: str | None) -> float | None:
    """``10.20 W`` -> 10.2; None for ``[N/A]`` and its kin."""
    match = re.match(r"-?\d+(\.\d+)?", text or "")
    return float(match[0]) if match else None


def reasons(row: dict[str, str]) -> int:
    """Bits of clocks_event_reasons.active; 0 where the driver does not say."""
    try:
        return int(row.get("clocks_event_reasons.active", "0"), 16)
    except ValueError:
        return 0


def _silent(facts: Facts) -> Iterator[Sight]:
    if facts.gpu.code == 0 and facts.gpu.rows:
        return
    if "version mismatch" in facts.gpu.err:
        return
    yield Sight(f"nvidia-smi: {facts.gpu.err or 'no GPU'}")


def _mismatch(facts: Facts) -> Iterator[Sight]:
    lines = [facts.gpu.err, *facts.kernel]
    found = next((line for line in lines if re.search(r"version mismatch|API mismatch", line)), "")
    if found:
        yield Sight(found.splitlines()[0])


def _hot(facts: Facts) -> Iterator[Sight]:
    for row in facts.gpu.rows:
        if reasons(row) & HEAT:
            yield Sight(
                f"{row['name']}: {row.get('temperature.gpu', '?')} °C, "
                f"{row.get('clocks.sm', '?')}, slowed down by heat"
            )


def _brake(facts: Facts) -> Iterator[Sight]:
    for row in facts.gpu.rows:
        if reasons(row) & (POWER_BRAKE | SLOWDOWN) and not reasons(row) & HEAT:
            yield Sight(f"{row['name']}: {row.get('power.draw', '?')}, slowed down by its hardware")


def _low_power(facts: Facts) -> Iterator[Sight]:
    for row in facts.gpu.rows:
        busy, clock = _number(row.get("utilization.gpu")), _number(row.get("clocks.sm"))
        if "GB10" not in row.get("name", "") or busy is None or clock is None:
            continue
        if busy >= 80 and clock < LIMITS.gb10_busy_mhz:
            yield Sight(
                f"{busy:.0f} % busy at {clock:.0f} MHz and {row.get('power.draw', '?')}, and no "
                "throttle reason"
            )


def _xids(facts: Facts) -> Iterator[Sight]:
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
        yield Sight(line, cause=f"Xid {number}: {cause}", remedy=remedy)


def _killer(facts: Facts) -> Iterator[Sight]:
    killed = [match[1] for line in facts.kernel if (match := _KILLED.search(line))]
    if killed:
        names = ", ".join(dict.fromkeys(killed))
        yield Sight(f"{len(killed)} processes killed within a day: {names}")


def _line(pattern: str, facts: Facts) -> Iterator[Sight]:
    found = [line.strip() for line in facts.kernel if re.search(pattern, line, re.IGNORECASE)]
    if found:
        yield Sight(f"{found[-1]} ({len(found)} lines within a day)")


def _cpu_heat(facts: Facts) -> Iterator[Sight]:
    yield from _line(r"temperature above threshold|critical temperature|thermal.*throttl", facts)


def _disk_errors(facts: Facts) -> Iterator[Sight]:
    yield from _line(r"I/O error|EXT4-fs error|nvme\S*: .*(timeout|reset|abort)", facts)


CHECKS = (
    Check(
        "gpu-silent", Severity.ERROR,
        "the driver is not loaded, hangs, or has lost the GPU",
        "sudo reboot; then DGX Dashboard, or the distribution's driver 580 (nothing here installs "
        "drivers)",
        "reference hosts, Reading the GPU and Identity; seed 002, hardware requirements", _silent,
    ),
    Check(
        "driver-half-updated", Severity.ERROR,
        "the driver was updated under a running kernel module",
        "sudo reboot",
        "reference hosts, Identity (updates of DGX OS need a reboot)", _mismatch,
    ),
    Check(
        "gpu-heat", Severity.ERROR,
        "too little air: the GPU slows itself down",
        "free the vents, another place, clean the fan; Sparks that are stacked heat each other",
        "NVIDIA, clocks event reasons", _hot,
    ),
    Check(
        "gpu-power-brake", Severity.ERROR,
        "the power supply or the board asks it to slow down",
        "the original power supply and cable; another outlet",
        "NVIDIA, clocks event reasons", _brake,
    ),
    Check(
        "gb10-low-power", Severity.ERROR,
        "GB10 fell into a low-power state that no setting lifts",
        "shut it down, take the power cable out for a minute, start it; then firmware by fwupdmgr",
        "reports of users: a GB10 that is busy and does not boost until its power was cut",
        _low_power,
    ),
    Check(
        "xid", Severity.ERROR,
        "the driver reports a fault of the GPU", "by its number",
        "NVIDIA, Xid catalogue", _xids,
    ),
    Check(
        "oom-killer", Severity.ERROR,
        "the host ran out of memory; on a Spark weights, KV cache and page cache share one pool",
        "gpu_memory_utilization: 0.80 or less; sidecars = {...} so that the memory is weighed",
        "seed 002, troubleshooting; reference hosts, Memory and disk", _killer,
    ),
    Check(
        "cpu-heat", Severity.WARNING,
        "the CPU slows down for heat", "free the vents, another place",
        "reference hosts, Reading the GPU", _cpu_heat,
    ),
    Check(
        "disk-errors", Severity.ERROR,
        "the disk fails or its connection does",
        "sudo smartctl -a; copy what matters, replace it; sparkwright verify INVENTORY",
        "reference hosts, Weights", _disk_errors,
    ),
)  # fmt: skip
