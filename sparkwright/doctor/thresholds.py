"""Where well ends and ill begins: one set of numbers for doctor, watch and alert rules.

The watch gets them in its configuration, since nothing of this package is on a host.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Limits:
    """Thresholds.

    Attributes:
        drafted: draft tokens that a judgement on acceptance needs at least.
        collapsed: share accepted below which the drafter only costs. The least that a card
            publishes is 0.11 (prose); the defect of older tags ends at 0.0.
        low: share accepted that is below every published one.
        decayed: share of the level of before below which acceptance has decayed, if it is low too:
            prose after code is no illness.
        stuck_seconds: running requests without a token for so long is a wedge. One chunk of a
            long prompt takes about 16 s, a whole prompt of 200K tokens about 100 s.
        cache_full: share of the KV cache, and cache_seconds how long it is at that.
        restarts_hour: restarts within an hour that are worth a word.
        throttled_share: share of the looks of ten minutes at which the GPU was held back.
        gb10_busy_mhz: a busy GB10 below this has fallen into its low-power state.
        disk_hours, disk_urgent_hours: until full, by the trend.
        disk_least: free share below which a disk is full for all purposes.
        queue_seconds: mean time to the first token above which requests stand in a queue.
        gb10_share: gpu_memory_utilization above which a Spark thrashes.
        gb10_batched: max_num_batched_tokens above which Sparks were seen to hang.
        pressure: percent of a minute in which something waited for memory.
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
    queue_seconds: float = 10
    gb10_share: float = 0.88
    gb10_batched: int = 32768
    pressure: float = 10

    def plain(self) -> dict[str, float]:
        """As data, for a host."""
        return asdict(self)


LIMITS = Limits()
#: Bits of clocks_event_reasons.active. A software power cap (0x4) is every busy RTX's daily life.
HEAT = 0x20 | 0x40
POWER_BRAKE = 0x80
SLOWDOWN = 0x08
