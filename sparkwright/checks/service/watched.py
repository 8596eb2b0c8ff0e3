"""What only the watch on the host can see, over hours, and the watch itself: named by both."""

from __future__ import annotations

from sparkwright.checks.service.check import Check
from sparkwright.findings.finding import Severity

CHECKS = (
    Check(
        "acceptance-decays", Severity.WARNING,
        "acceptance falls while the server runs: an old tag corrupts the drafter's cache, or the "
        "prompts have changed",
        "restart the service and see whether it is back; tag 2026-06-11-pr41703 or later",
        "card of vllm-ultimate-dgx-spark, defects of PR 41703; card of "
        "Gemma-4-26B-A4B-it-Uncensored-NVFP4, fixes of 2026-06-11",
    ),
    Check(
        "disk-fills", Severity.WARNING,
        "by the trend of the last hours the disk will be full soon",
        "sparkwright models prune INVENTORY; docker system df; look for logs that grow",
        "NVIDIA's playbooks and reports of users",
    ),
    Check(
        "drift", Severity.WARNING,
        "what the last deploy wrote was changed by hand, or rolled back",
        "sparkwright diff INVENTORY shows it; deploying restores it",
        "sparkwright",
    ),
    Check(
        "watch-asleep", Severity.WARNING,
        "its timer is stopped, or its program fails",
        "sudo systemctl status sparkwright-watch.timer sparkwright-watch.service; deploy again",
        "sparkwright",
    ),
)  # fmt: skip
