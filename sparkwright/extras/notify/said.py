"""What was said to whom: so that everything is said once, also after a restart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from sparkwright.findings.finding import Finding, Severity

#: Seconds between two notices to one address, and how many an hour has at most.
GAP, HOURLY = 300.0, 6
#: Seconds for which something must be gone before it is over: what comes and goes is one.
OVER = 600.0
_HOUR = 3600.0


class Told(BaseModel):
    """One finding that was told.

    Attributes:
        since: when it was told first, seconds since the epoch.
        gone: since when it is not seen any more.
    """

    model_config = ConfigDict(extra="ignore")

    id: str
    host: str | None = None
    service: str | None = None
    severity: Severity
    since: float
    gone: float | None = None


class Recipient(BaseModel):
    """One address: what it was told, when notices went out, and how often sending failed since.

    Attributes:
        sent: of the last hour.
        retry: not before; seconds since the epoch.
        why: why sending failed.
    """

    model_config = ConfigDict(extra="ignore")

    told: dict[str, Told] = {}
    sent: list[float] = []
    failures: int = 0
    retry: float = 0.0
    why: str = ""


class Record(BaseModel):
    """The file: by address (its hash)."""

    model_config = ConfigDict(extra="ignore")

    recipients: dict[str, Recipient] = Field(default_factory=dict)


@dataclass(frozen=True)
class Notice:
    """What is new for an address."""

    began: tuple[Finding, ...] = ()
    worse: tuple[Finding, ...] = ()
    over: tuple[Told, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.began or self.worse or self.over)


def key(host: str | None, id_: str, service: str | None) -> str:
    """What makes two findings the same."""
    return hashlib.sha256(repr((host, id_, service)).encode()).hexdigest()[:16]


def _by_key(findings: Sequence[Finding]) -> dict[str, Finding]:
    """Of several with one name the first, which is the heaviest."""
    found: dict[str, Finding] = {}
    for one in findings:
        found.setdefault(key(one.subject.host, one.id, one.subject.service), one)
    return found


def news(
    recipient: Recipient, findings: Sequence[Finding], unknown: frozenset[str], now: float
) -> Notice:
    """What an address was not told yet; marks what is gone.

    Args:
        findings: errors first.
        unknown: hosts of which only what is among the findings is known.
    """
    by_key = _by_key(findings)
    for name, told in recipient.told.items():
        if name in by_key:
            told.gone = None
        elif told.gone is None and told.host not in unknown:
            told.gone = now
    return Notice(
        began=tuple(one for name, one in by_key.items() if name not in recipient.told),
        worse=tuple(
            one
            for name, one in by_key.items()
            if name in recipient.told
            and one.severity is Severity.ERROR is not recipient.told[name].severity
        ),
        over=tuple(
            one
            for one in recipient.told.values()
            if one.gone is not None and not 0 <= now - one.gone < OVER
        ),
    )


def held_back(recipient: Recipient, now: float) -> str | None:
    """Why nothing is sent now, or None. Times ahead of the clock do not count: it was set back."""
    if recipient.failures and 0 < recipient.retry - now <= _HOUR:
        return "it failed, and is tried again later"
    recent = [at for at in recipient.sent if 0 <= now - at < _HOUR]
    if any(now - at < GAP for at in recent) or len(recent) >= HOURLY:
        return "enough was sent for now"
    return None


def sent(recipient: Recipient, notice: Notice, now: float) -> None:
    """Note that a notice went out."""
    for one in (*notice.began, *notice.worse):
        subject = one.subject
        name = key(subject.host, one.id, subject.service)
        known = recipient.told.get(name)
        recipient.told[name] = Told(
            id=one.id, host=subject.host, service=subject.service, severity=one.severity,
            since=known.since if known else now,
        )  # fmt: skip
    over = {key(one.host, one.id, one.service) for one in notice.over}
    recipient.told = {name: one for name, one in recipient.told.items() if name not in over}
    recipient.sent = [*(at for at in recipient.sent if 0 <= now - at < _HOUR), now]
    recipient.failures, recipient.retry, recipient.why = 0, 0.0, ""


def failed(recipient: Recipient, why: str, now: float) -> None:
    """Note that one did not: the next try is after a minute, two, four, up to an hour."""
    recipient.failures += 1
    recipient.retry = now + min(60.0 * 2 ** min(recipient.failures - 1, 10), _HOUR)
    recipient.why = why
