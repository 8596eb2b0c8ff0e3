"""Notices are sent once, combined and rate-limited, and are not repeated after a restart."""

from pathlib import Path

import pytest

from sparkwright.config.notices import Address, address
from sparkwright.extras.notify.notices import GAP, HOURLY, Record, Sent, go, held, read, try_out
from sparkwright.findings.finding import Finding
from tests.libyaml import safe_load
from tests.unit.extras.notify.watched_hosts import NOW, finding

NTFY, MAIL = address("ntfy:fleet", ""), address("mailto:me@lab.example", "")
ROUNDS = safe_load(Path(__file__).with_name("rounds.yaml").read_text())


class Fleet:
    """Rounds of the command by a fake clock, and the notices of every address."""

    def __init__(self, *addresses: Address) -> None:
        self.addresses = addresses or (NTFY,)
        self.record, self.now = Record(), NOW
        self.got: list[tuple[str, str, str]] = []
        self.broken: set[str] = set()

    def send(self, where: Address, title: str, body: str) -> str | None:
        if where.shown in self.broken:
            return "HTTP 500"
        self.got.append((where.shown, title, body))
        return None

    def round(self, *findings: Finding, minutes: float = 10, unknown: str = "") -> list[Sent]:
        self.now += minutes * 60
        hosts = frozenset(filter(None, [unknown]))
        return go(self.addresses, self.record, findings, hosts, self.now, self.send)

    @property
    def titles(self) -> list[str]:
        return [title for _, title, _ in self.got]


def test_a_new_finding_is_sent_once() -> None:
    fleet = Fleet()
    for minutes in range(9, 99, 10):  # changed figures cause no second notice
        observed = f"no token for {minutes} min"
        fleet.round(finding(observed=observed, reason="it hangs", remedy="restart it"))
    body = (
        "new: error: spark-1: qwen36: wedge (no token for 9 min)\n    it hangs\n    -> restart it"
    )
    assert fleet.got == [("ntfy at ntfy.sh", "spark-1: qwen36: wedge", body)]


@pytest.mark.parametrize("name", ROUNDS)
def test_the_end_of_a_finding_is_sent_after_a_delay(name: str) -> None:
    fleet = Fleet()
    for each in ROUNDS[name]["rounds"] * ROUNDS[name].get("times", 1):
        fleet.broken = {NTFY.shown} if each.get("broken") else set()
        result = [finding(**item) for item in each.get("findings", ())]
        fleet.round(*result, minutes=each.get("minutes", 10), unknown=each.get("unknown", ""))
    assert [title for *_, title in ROUNDS[name]["notices"]] == fleet.titles
    for (begin, _), (*_, body) in zip(ROUNDS[name]["notices"], fleet.got, strict=True):
        assert f"{body}:".startswith(f"{begin}:")
        assert len(body.splitlines()) <= ROUNDS[name].get("lines", 9)


def test_notices_are_rate_limited_and_sent_later() -> None:
    fleet = Fleet()
    fleet.round(finding("a"))
    (held_back,) = fleet.round(finding("a"), finding("b"), minutes=1)
    assert (held_back.state, held_back.why) == ("held back", "the limit of notices is reached")
    fleet.round(finding("a"), finding("b"), finding("c"), minutes=GAP / 60)
    assert fleet.titles == ["a: qwen36: wedge", "b, c: qwen36: wedge"]
    for number in range(40):
        fleet.round(*(finding(f"h{item}") for item in range(number)), minutes=5)
    assert len(fleet.got) <= HOURLY * 4
    # At the end every finding was reported.
    fleet.round(*(finding(f"h{number}") for number in range(39)), minutes=60)
    assert len(fleet.record.recipients[NTFY.key].reported) == 39


def test_a_failing_address_is_retried_less_and_less_often() -> None:
    fleet = Fleet(NTFY, MAIL)
    fleet.broken = {NTFY.shown}
    tried = 0
    for _ in range(600):
        tried += fleet.round(finding(), minutes=1)[0].state == "failed"
    # In ten hours the retries follow after 1, 2, 4, 8, 16 and 32 minutes, then every hour.
    assert tried == 15
    # The other address gets the finding once, and a notice of the failure.
    assert [item[:2] for item in fleet.got] == [(MAIL.shown, "spark-1: qwen36: wedge (and 1 more)")]
    fleet.broken.clear()
    fleet.round(finding(), minutes=61)
    assert (NTFY.shown, "spark-1: qwen36: wedge") in [item[:2] for item in fleet.got[1:]]
    fleet.round(finding(), minutes=1)
    fleet.round(finding(), minutes=11)
    assert fleet.titles[-1] == "over: notice-not-sent"


def _told_once(folder: Path) -> None:
    """Two starts of the command with this record."""
    fleet = Fleet()
    for _ in range(2):
        with held(folder) as fleet.record:
            fleet.round(finding())
    assert len(fleet.got) == 1


def test_a_restart_repeats_no_notice(tmp_path: Path) -> None:
    path = tmp_path / "state/notified.json"
    _told_once(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert NTFY.url.value not in path.read_text()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"recipients": 1}', "\xff", "[" * 100_000])
def test_an_unreadable_record_repeats_every_finding_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notified.json"
    path.write_text(text, encoding="latin-1")
    assert read(path) == Record()
    _told_once(path)


def test_a_removed_address_is_forgotten() -> None:
    fleet = Fleet(NTFY, MAIL)
    fleet.round(finding())
    fleet.addresses = (MAIL,)
    fleet.round(finding())
    assert list(fleet.record.recipients) == [MAIL.key]


def test_a_test_notice_goes_to_every_address_without_a_record() -> None:
    fleet = Fleet(NTFY, MAIL)
    fleet.broken = {MAIL.shown}
    done = try_out(fleet.addresses, fleet.send)
    assert [(item.state, item.why) for item in done] == [("sent", ""), ("failed", "HTTP 500")]
    assert fleet.record == Record()
