"""One round: what is new goes to every address, and what was sent is remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sparkwright.config.notices import Address
from sparkwright.extras.notify import said
from sparkwright.extras.notify.said import Recipient, Record
from sparkwright.extras.notify.words import body, title
from sparkwright.findings.finding import Finding, Severity, Subject

#: Sends title and body to an address; why it could not be sent, or None.
Send = Callable[[Address, str, str], str | None]


@dataclass(frozen=True)
class Sent:
    """What became of an address in this round.

    Attributes:
        state: ``sent``, ``nothing new``, ``held back`` or ``failed``.
        why: of what was held back or failed.
        title, body: the notice; empty for nothing new.
    """

    address: str
    state: str
    why: str = ""
    title: str = ""
    body: str = ""


def go(
    addresses: Sequence[Address],
    record: Record,
    findings: Sequence[Finding],
    unknown: frozenset[str],
    now: float,
    send: Send,
) -> list[Sent]:
    """Tell every address what it was not told yet; the record is changed.

    Args:
        findings: what is wrong, errors first.
        unknown: hosts of which nothing else is known now.
        now: seconds since the epoch.
    """
    record.recipients = {one.key: record.recipients.get(one.key, Recipient()) for one in addresses}
    return [
        _tell(one, record, [*findings, *failing(addresses, record, one)], unknown, now, send)
        for one in addresses
    ]


def failing(
    addresses: Sequence[Address], record: Record, other_than: Address | None = None
) -> list[Finding]:
    """A finding for each address that notices do not reach."""
    return [
        Finding(
            "notice-not-sent", Severity.ERROR, Subject(file="notify", key=one.shown),
            f"failed {state.failures} times: {state.why}",
            reason="nobody is told there what goes wrong",
            remedy="sparkwright notify --test", source="sparkwright",
        )
        for one in addresses
        if one != other_than
        and (state := record.recipients.get(one.key, Recipient())).failures
    ]  # fmt: skip


def _tell(
    address: Address,
    record: Record,
    findings: Sequence[Finding],
    unknown: frozenset[str],
    now: float,
    send: Send,
) -> Sent:
    recipient = record.recipients[address.key]
    notice = said.news(recipient, findings, unknown, now)
    if not notice:
        return Sent(address.shown, "nothing new")
    made = Sent(address.shown, "sent", "", title(notice), body(notice, now))
    if why := said.held_back(recipient, now):
        return replace(made, state="held back", why=why)
    if why := send(address, made.title, made.body):
        said.failed(recipient, why, now)
        return replace(made, state="failed", why=why)
    said.sent(recipient, notice, now)
    return made


def try_out(addresses: Sequence[Address], send: Send) -> list[Sent]:
    """A notice to every address that says that it is a test; nothing of it is remembered."""
    head, text = "test", "This is a test. Nothing is wrong."
    return [
        Sent(one.shown, "failed" if why else "sent", why or "", head, text)
        for one in addresses
        for why in [send(one, head, text)]
    ]
