"""What the watch on the host has seen over hours, which one look can't see."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sparkwright.doctor.check import Check, Sight
from sparkwright.doctor.facts import Facts
from sparkwright.doctor.watch import SILENT
from sparkwright.findings.finding import Severity
from sparkwright.text.lock_owner import age


def _watched(name: str, facts: Facts) -> Iterator[Sight]:
    if facts.watch is None or _silent(facts):
        return
    for finding in facts.watch.findings:
        if finding.name == name:
            since = age(facts.now - finding.since)
            yield Sight(
                f"{finding.seen} (watched for {since})",
                finding.service,
                severity=Severity(finding.severity),
            )


def _silent(facts: Facts) -> bool:
    return facts.watch is not None and facts.now - facts.watch.at > SILENT


def _asleep(facts: Facts) -> Iterator[Sight]:
    if facts.watch is not None and _silent(facts):
        yield Sight(f"the watch looked last {age(facts.now - facts.watch.at)} ago")


#: Illnesses that only a history shows. Those that one look shows too have the same name there.
ONLY_WATCHED = (
    Check(
        "acceptance-decays", Severity.WARNING,
        "acceptance falls while the server runs: an old tag corrupts the drafter's cache, or the "
        "prompts have changed",
        "restart the service and see whether it is back; tag 2026-06-11-pr41703 or later",
        "seed 000, defects of PR 41703; seed 003, fixes of 2026-06-11",
        partial(_watched, "acceptance-decays"),
    ),
    Check(
        "disk-fills", Severity.WARNING,
        "by the trend of the last hours the disk will be full soon",
        "sparkwright models prune INVENTORY; docker system df; look for logs that grow",
        "reference hosts, Weights", partial(_watched, "disk-fills"),
    ),
    Check(
        "drift", Severity.WARNING,
        "somebody changed by hand what the last deploy wrote, or rolled it back",
        "sparkwright diff INVENTORY shows it; deploying puts it right",
        "this project", partial(_watched, "drift"),
    ),
    Check(
        "not-serving", Severity.ERROR,
        "/health gives no 200 although the unit runs longer than a boot may take",
        "sudo journalctl -u UNIT; restart it",
        "reference hosts, Containers", partial(_watched, "not-serving"), vague=True,
    ),
)  # fmt: skip
CHECKS = (
    *ONLY_WATCHED,
    Check(
        "watch-asleep", Severity.WARNING,
        "its timer is stopped, or its program fails",
        "sudo systemctl status sparkwright-watch.timer sparkwright-watch.service; deploy again",
        "this project", _asleep,
    ),
)  # fmt: skip


def as_watched(check: Check) -> Check:
    """The same illness, as the watch saw it."""
    return Check(
        check.name, check.severity, check.cause, check.remedy, check.source,
        partial(_watched, check.name), check.vague,
    )  # fmt: skip
