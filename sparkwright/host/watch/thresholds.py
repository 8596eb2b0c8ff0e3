"""Thresholds: one set of numbers for doctor, watch and alert rules.

Read them as ``thresholds.THRESHOLDS``, where they are used: a changed one changes all three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Thresholds:
    """Where something begins to be wrong.

    Attributes:
        drafted: draft tokens that a judgement on acceptance needs at least.
        collapsed: share accepted below which the drafter only costs. The least that a card
            publishes is 0.11 (prose); the defect of older tags ends at 0.0.
        low: share accepted that is below every published one.
        decayed: share of the level of before below which acceptance has decayed, if it is low too:
            prose after code is no fault.
        stuck_seconds: running requests without a token for so long are a wedge. One chunk of a
            long prompt takes about 16 s, a whole prompt of 200K tokens about 100 s.
        cache_full: share of the KV cache, and cache_seconds how long it is at that.
        restarts_hour: restarts within an hour that are reported.
        throttled_share: share of the looks of ten minutes at which the GPU was held back.
        gb10_busy_mhz: a busy GB10 below this has fallen into its low-power state.
        disk_hours, disk_urgent_hours: until full, by the trend.
        disk_least: free share below which a disk counts as full.
        queue_seconds: mean time to the first token above which requests stand in a queue.
        ended: requests that must have ended for a judgement on how they end.
        cut, abandoned: share of them that ended by their length, or were aborted by the client.
        gb10_sequences: max_num_seqs from which a KV cache set by hand froze a Spark.
        pressure, disk_pressure: percent of a minute in which something waited for memory, or
            everything for disks.
        memory_least_gib: available memory below which a host has none left.
        fetch_idle_seconds: without a byte for so long a fetch hangs.
        link_mbps: what a port of the ConnectX-7 between two Sparks has, in Mb/s.
        stuck_busy, stuck_watts: a GB10 that is so busy, in percent, and draws less than so many
            watts waits for another rank (96 % at 22 W were seen).
        ranks_apart_gib: available memory by which the hosts of a cluster may differ.
        watch_silent_seconds: without a look for so long the watch does not run.
    """

    drafted: int = 2000
    collapsed: float = 0.02
    low: float = 0.08
    decayed: float = 0.3
    stuck_seconds: int = 240
    cache_full: float = 0.995
    cache_seconds: int = 600
    restarts_hour: int = 1
    throttled_share: float = 0.5
    gb10_busy_mhz: int = 900
    disk_hours: float = 48
    disk_urgent_hours: float = 6
    disk_least: float = 0.03
    stuck_busy: float = 90
    stuck_watts: float = 30
    ranks_apart_gib: float = 8
    queue_seconds: float = 10
    ended: int = 20
    cut: float = 0.5
    abandoned: float = 0.25
    gb10_sequences: int = 64
    pressure: float = 10
    disk_pressure: float = 30
    memory_least_gib: int = 4
    fetch_idle_seconds: int = 600
    link_mbps: int = 200_000
    watch_silent_seconds: int = 600

    def at_once(self) -> Thresholds:
        """For two looks some seconds apart: what holds at both counts as lasting."""
        return replace(self, stuck_seconds=1, cache_seconds=1)


THRESHOLDS = Thresholds()
#: Bits of clocks_event_reasons.active. A software power cap (0x4) is every busy RTX's daily life.
HEAT = 0x20 | 0x40
BRAKE = 0x80 | 0x08  # by the power supply, or by the hardware
