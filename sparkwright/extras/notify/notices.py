"""Notices: new findings for each address, as text, and the record of sent notices.

Each finding is reported once when it begins, worsens and ends, also across restarts.

A host's text may contain a line of a log, with a key or a prompt. Only figures in the watch's
formats, ids of known checks and names of planned services are passed on.
"""

import fcntl
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel

from sparkwright.checks.service.diagnose import CHECKS
from sparkwright.checks.service.watch import reported
from sparkwright.config.notices import Address
from sparkwright.documents.text_files import write
from sparkwright.findings.check import Symptom, load
from sparkwright.findings.finding import Finding, Severity, Subject, errors_first
from sparkwright.findings.render import count, together
from sparkwright.findings.user_error import Messages
from sparkwright.results.status import Deployment
from sparkwright.text.lock_owner import age
from sparkwright.text.shipped_yaml import beside
from sparkwright.text.visible import visible

_FIGURES = re.compile(
    "|".join(beside(__file__, "figures.yaml")).replace("SPAN", "[0-9]{1,6} (?:s|min|h|d)")
)
_SERVICE = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_RELEASE = re.compile("[0-9a-f]{12}")
#: Findings of this command itself.
TEXTS = load(Path(__file__).with_name("checks.yaml"))
#: Finding for a run in which no host answered.
UNANSWERED = TEXTS["fleet-silent"].finding(Symptom())
#: Seconds after a switch during which the switch is the likeliest cause of a fault.
_RECENT = 86400.0


def current(
    deployments: Mapping[str, Deployment], silent: Iterable[str] = ()
) -> tuple[list[Finding], frozenset[str]]:
    """All findings, errors first, and the hosts that do not answer.

    Args:
        silent: hosts that did not answer.

    A host with a switch under way is left out: the switch stops services on purpose.
    """
    findings = [TEXTS["host-silent"].finding(Symptom(host=host)) for host in silent]
    unknown = {finding.subject.host or "" for finding in findings}
    for host, deployment in deployments.items():
        if deployment.lock or (deployment.switch and deployment.switch.step != "ended"):
            unknown.add(host)
        else:
            findings += _of(host, deployment)
            # Without a plan, the required services are unknown.
            unknown |= set() if deployment.plan_known else {host}
    return errors_first(findings), frozenset(unknown)


def _of(host: str, seen: Deployment) -> Iterator[Finding]:
    symptoms = list(reported(seen.watch, seen.now))
    named = {*(symptom.service for symptom in symptoms), *seen.sleeping}
    for name in seen.planned:
        status = seen.services.get(name)
        stopped = status is None or status.unit.get("ActiveState") == "inactive"
        if stopped and name not in named:
            symptoms.append(Symptom("stopped", service=name))
    # Without a plan only the names of deployed services are known.
    names = list(seen.planned if seen.plan_known else filter(_SERVICE.fullmatch, seen.services))
    for symptom in symptoms:
        # No text of the host is sent.
        service = symptom.service if symptom.service in names else None
        figures = _FIGURES.search(str(symptom.values.get("observed", "")))
        observed = [figures[0] if figures else "", _switched(service, seen) if service else ""]
        text = ", ".join(filter(None, observed))
        bare = Symptom(host=host, service=service, severity=symptom.severity)
        finding = CHECKS.texts.get(symptom.check, TEXTS["unknown"]).finding(bare)
        yield replace(finding, observed=text)


def _switched(service: str, seen: Deployment) -> str:
    """Describe the last switch of a service, if the switch is recent: a change is the likeliest
    cause.
    """
    last = next((entry for entry in reversed(seen.history) if entry.service == service), None)
    if last is None or not 0 <= seen.now - last.at <= _RECENT:
        return ""
    if not all(map(_RELEASE.fullmatch, filter(None, (last.from_release, last.to)))):
        return ""
    return f"release {last.from_release or 'none'} -> {last.to} {age(seen.now - last.at)} ago"


PLACE = Path(".sparkwright/notified.json")
#: Largest number of bytes of the record: sparkwright writes no larger file.
_LARGEST = 1 << 22
#: Seconds between two notices to one address, and the largest number of notices an hour.
GAP, HOURLY = 300.0, 6
#: Seconds for which a finding must be absent before the finding counts as ended: a finding that
#: comes and goes is reported once.
OVER = 600.0
_HOUR = 3600.0
_MESSAGES = Messages(__file__)
#: Number of findings to report one by one, and of hosts and characters of each finding.
_LINES, _HOSTS, _LONGEST = 10, 6, 300
#: Function that sends title and body to an address, and returns the reason of a failure, or None.
Send = Callable[[Address, str, str], str | None]


class Reported(BaseModel):
    """A finding that was reported to an address.

    Attributes:
        finding: finding without its texts.
        since: time of the first notice, seconds since the epoch.
        gone: time since which the finding is no longer observed.
    """

    finding: Finding
    since: float
    gone: float | None = None


@dataclass(frozen=True)
class News:
    """A finding that is ``worse``, ``new`` or ``over`` for an address, with the time of its first
    notice.
    """

    kind: str
    finding: Finding
    since: float


class Recipient(BaseModel):
    """Record of an address: reported findings, times of notices, and failures since the last
    notice.

    Attributes:
        sent: times of notices in the last hour.
        retry: earliest time of the next try, seconds since the epoch.
        why: reason of the last failure.
    """

    reported: dict[str, Reported] = {}
    sent: list[float] = []
    failures: int = 0
    retry: float = 0.0
    why: str = ""

    def held_back(self, now: float) -> str:
        """Return the reason to send nothing now; empty if a notice may be sent.

        Times ahead of the clock do not count, since the clock was set back.
        """
        if self.failures and 0 < self.retry - now <= _HOUR:
            return "the last notice failed, and is sent again later"
        self.sent = [at for at in self.sent if 0 <= now - at < _HOUR]
        if any(now - at < GAP for at in self.sent) or len(self.sent) >= HOURLY:
            return "the limit of notices is reached"
        return ""

    def remember(self, notice: Sequence[News], now: float) -> None:
        """Record that a notice was sent."""
        for each in notice:
            finding = each.finding
            if each.kind == "over":
                del self.reported[_key(finding)]
            else:
                bare = Finding(finding.id, finding.severity, finding.subject)
                self.reported[_key(finding)] = Reported(finding=bare, since=each.since)
        self.sent.append(now)
        self.failures, self.retry, self.why = 0, 0.0, ""


class Record(BaseModel):
    """The file of sent notices, by the hash of the address."""

    recipients: dict[str, Recipient] = {}


@contextmanager
def held(path: Path) -> Iterator[Record]:
    """Lock the record for this process, and write its final state.

    An unreadable file counts as empty: then every notice is sent again.

    Raises:
        UserError: the file can't be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record = read(path)
            try:
                yield record
            finally:
                write(path, record.model_dump_json(indent=1) + "\n", 0o600)
    except OSError as error:
        raise _MESSAGES.refusal("record", str(path), error=error) from None


def read(path: Path) -> Record:
    """Read the record; the result is empty if the file can't be read."""
    try:
        with path.open("rb") as file:
            return Record.model_validate_json(file.read(_LARGEST))
    except (OSError, ValueError):
        return Record()


@dataclass(frozen=True)
class Sent:
    """Outcome for an address in this round.

    Attributes:
        state: ``sent``, ``nothing new``, ``held back`` or ``failed``.
        why: reason of a delay or failure.
        title, body: the notice; empty without news.
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
    """Send every address its new notices, and update the record.

    Args:
        findings: errors first.
        unknown: hosts whose findings are unknown now.
        now: seconds since the epoch.
    """
    before = record.recipients
    record.recipients = {each.key: before.get(each.key, Recipient()) for each in addresses}

    def tell(address: Address) -> Sent:
        recipient = record.recipients[address.key]
        failing = [
            replace(
                TEXTS["notice-not-sent"].finding(Symptom()),
                subject=Subject(file="notify", key=other.shown),
                observed=f"failed {state.failures} times: {state.why}",
            )
            for other in addresses
            if other != address and (state := record.recipients[other.key]).failures
        ]  # fmt: skip
        notice = news(recipient, [*findings, *failing], unknown, now)
        if not notice:
            return Sent(address.shown, "nothing new")
        sent = Sent(address.shown, "sent", "", title(notice), body(notice, now))
        if why := recipient.held_back(now):
            return replace(sent, state="held back", why=why)
        if why := send(address, sent.title, sent.body) or "":
            # The next try follows after one minute, then after two and four, and so on up to an
            # hour.
            recipient.failures, recipient.why = recipient.failures + 1, why
            recipient.retry = now + min(60.0 * 2 ** min(recipient.failures - 1, 10), _HOUR)
            return replace(sent, state="failed", why=why)
        recipient.remember(notice, now)
        return sent

    return [tell(address) for address in addresses]


def try_out(addresses: Sequence[Address], send: Send) -> list[Sent]:
    """Send a test notice to every address, without a record."""
    head, text = "test", "This is a test. Nothing is wrong."
    tries = [(address.shown, send(address, head, text)) for address in addresses]
    return [Sent(name, "failed" if why else "sent", why or "", head, text) for name, why in tries]


def _key(finding: Finding) -> str:
    """Identity of a finding, by which findings are compared between rounds."""
    return repr((finding.subject.host, finding.id, finding.subject.service))


def news(
    recipient: Recipient, findings: Sequence[Finding], unknown: frozenset[str], now: float
) -> list[News]:
    """Return the news for an address, the most severe first, and mark ended findings.

    Args:
        findings: errors first.
        unknown: hosts whose other findings are unknown.
    """
    worse, new, over = [], [], []
    by_key: dict[str, Finding] = {}
    for finding in findings:
        by_key.setdefault(_key(finding), finding)
    for key, finding in by_key.items():
        entry = recipient.reported.get(key)
        if entry is None:
            new.append(News("new", finding, now))
        elif finding.severity is Severity.ERROR is not entry.finding.severity:
            worse.append(News("worse", finding, entry.since))
    for key, entry in recipient.reported.items():
        if key in by_key:
            entry.gone = None
        elif entry.gone is None and entry.finding.subject.host not in unknown:
            entry.gone = now
        if entry.gone is not None and not 0 <= now - entry.gone < OVER:
            # The severity of an ended fault does not matter.
            bare = replace(entry.finding, severity=Severity.WARNING)
            over.append(News("over", bare, entry.since))
    return [*worse, *new, *over]


def title(notice: Sequence[News]) -> str:
    """``spark-1, spark-2: qwen36: wedge (and 2 more)``: the most severe finding, and the number of
    other findings.
    """
    findings = [each.finding for each in notice if each.kind != "over"]
    over = "" if findings else "over: "
    named = together(findings or [each.finding for each in notice])
    heads = [_head(*each) for each in named.items()]
    more = f" (and {len(heads) - 1} more)" if len(heads) > 1 else ""
    return visible(f"{over}{heads[0]}{more}", 120)


def body(notice: Sequence[News], now: float) -> str:
    """All news, folded, with remedies: a few lines for any number of findings."""
    return "\n".join(line for kind in ("worse", "new", "over") for line in _part(notice, kind, now))


def _part(notice: Sequence[News], kind: str, now: float) -> Iterator[str]:
    since: dict[Finding, float] = {}
    for each in notice:
        bare = each.finding.on(None)
        since[bare] = min(since.get(bare, each.since), each.since)
    entries = list(together(each.finding for each in notice if each.kind == kind).items())
    for finding, hosts in entries[:_LINES]:
        head = _head(finding, hosts)
        if kind == "over":
            lines = [f"over: {head} (after {age(now - since[finding])})"]
        else:
            observed = f" ({finding.observed})" if finding.observed else ""
            lines = [f"{kind}: {finding.level}: {head}{observed}"]
            lines += [f"    {finding.reason}", f"    -> {finding.remedy}"]
        yield from (visible(line, _LONGEST) for line in lines)
    if more := entries[_LINES:]:
        yield f"{kind}: {count(len(more), 'more finding')}: sparkwright status"


def _head(finding: Finding, hosts: Sequence[str]) -> str:
    named = ", ".join(hosts)
    if len(hosts) > _HOSTS:
        named = f"{', '.join(hosts[: _HOSTS - 1])} and {len(hosts) - _HOSTS + 1} more hosts"
    return ": ".join(filter(None, (named, finding.subject.service, finding.id)))
