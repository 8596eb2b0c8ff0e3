"""Usage in answers, its database, which survives a power cut, and limits by usage."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from sparkwright.host.models import usage
from sparkwright.host.models.document import Key
from sparkwright.host.models.limits import Charges
from sparkwright.host.models.refusal import Refused
from sparkwright.host.models.report import UsageRequest, main
from sparkwright.host.models.usage import Ledger, Meter
from tests.tables import Tables

cases = Tables(__file__)

_CHAT = b'data: {"choices":[{"delta":{"content":"\\"usage\\": {"}}]}\n\n'
_OWN = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n'
_DONE = b"data: [DONE]\n\n"
_NULL = b'data: {"choices":[{"index":0}],"usage":null}\n\n'
_RESPONSES = (
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta"}\n\n'
    b'event: response.completed\ndata: {"type":"response.completed",'
    b'"response":{"usage":{"input_tokens":5,"output_tokens":2}}}\n\n'
)
_MESSAGES = (
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":'
    b'{"input_tokens":1,"cache_read_input_tokens":4,"output_tokens":1}}}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":2}}\n\n'
)


@pytest.mark.parametrize(
    ("stream", "kept"),
    [
        (_CHAT + _CHAT + _OWN + _DONE, _CHAT + _CHAT + _DONE),
        (_CHAT + _NULL + _OWN + _DONE, _CHAT + _NULL + _DONE),
        (b": waiting\r\n\r\n" + (_CHAT + _OWN).replace(b"\n", b"\r\n"), None),
        (_RESPONSES, _RESPONSES),
        (_MESSAGES, _MESSAGES),
    ],
)
@pytest.mark.parametrize("hide", [True, False])
def test_a_stream_is_read_with_any_split(stream: bytes, kept: bytes | None, hide: bool) -> None:
    kept = kept or b": waiting\r\n\r\n" + _CHAT.replace(b"\n", b"\r\n")
    splits = [[stream[:at], stream[at:]] for at in range(len(stream))]
    for pieces in (*splits, [bytes([byte]) for byte in stream]):
        meter = Meter(stream=True, hide=hide)
        passed = b"".join(map(meter.feed, pieces)) + meter.end()
        assert passed == (kept if hide else stream)
        assert (meter.tokens_in, meter.tokens_out) == (5, 2)


def test_a_cut_stream_is_forwarded_up_to_its_last_byte() -> None:
    for at in range(len(_CHAT + _CHAT)):
        meter = Meter(stream=True, hide=True)
        assert meter.feed((_CHAT + _CHAT)[:at]) + meter.end() == (_CHAT + _CHAT)[:at]
        assert meter.events == at // len(_CHAT)
    long = Meter(stream=True, hide=True)
    assert len(long.feed(b"data: " + b"A" * (2 << 20))) > 1 << 20


@cases("body", "expected", more=[
    ({"data": ["A" * 300_000], "usage": {"prompt_tokens": 5, "total_tokens": 5}}, [5, 0]),
    ({"text": '"usage": {"prompt_tokens": 9}' * 9000, "usage": {"input_tokens": 5}}, [5, 0]),
])  # fmt: skip
def test_a_body_of_any_length_is_read(body: object, expected: list[int]) -> None:
    text, meter = json.dumps(body).encode(), Meter(stream=False)
    pieces = [text[at : at + 16_000] for at in range(0, len(text), 16_000)]
    assert b"".join(map(meter.feed, pieces)) + meter.end() == text
    assert [meter.tokens_in, meter.tokens_out] == expected


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path / "usage.db"))


def _rows(folder: Path, since: str = "2000-01-01") -> list[tuple[object, ...]]:
    rows = main(UsageRequest(str(folder / "usage.db"), since))
    return [(row.key, row.model, row.requests, row.tokens_in, row.tokens_out) for row in rows]


def test_counts_of_two_programs_add_up_in_one_private_file(tmp_path: Path, ledger: Ledger) -> None:
    assert _rows(tmp_path) == []
    other = Ledger(str(tmp_path / "usage.db"))
    for each in (ledger, other, other):
        each.add("laptop", "small", 1, 0, 5, 2, 0.1, 0)
        asyncio.run(each.flush())
    assert _rows(tmp_path) == [("laptop", "small", 3, 15, 6)]
    assert (tmp_path / "usage.db").stat().st_mode & 0o777 == 0o600
    ledger.add("laptop", "small", 1, 0, 5, 2, 0.1, 0)
    asyncio.run(ledger.flush())  # adds the other program's earlier counts
    assert ledger.of_today("laptop") == (4, 28)


def test_a_database_that_fails_keeps_counts_in_memory(
    tmp_path: Path, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "usage.db").mkdir()
    for _ in range(2):
        ledger.add("laptop", "small", 1, 0, 5, 2, 0.1, 0)
        asyncio.run(ledger.flush())
    assert (ledger.unwritten, ledger.of_today("laptop")) == (2, (2, 14))
    assert capsys.readouterr().out.count("kept in memory") == 1
    (tmp_path / "usage.db").rmdir()
    asyncio.run(ledger.flush())
    assert (ledger.unwritten, _rows(tmp_path)) == (0, [("laptop", "small", 2, 10, 4)])


def test_counts_in_memory_are_bounded(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(usage, "ROWS", 3)
    monkeypatch.setattr(ledger, "_write", _no_thread)
    for model in "abcde":
        ledger.add("laptop", model, 1, 0, 5, 2, 0.1, 0)
    asyncio.run(ledger.flush())
    assert ledger.unwritten == 3
    assert "2 rows are lost" in capsys.readouterr().out


def _no_thread(_: str) -> None:
    raise RuntimeError("can't start new thread")


def test_counts_whose_sums_fail_are_written_once(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.add("laptop", "small", 1, 0, 5, 2, 0.1, 0)
    with monkeypatch.context() as patch:
        patch.setattr(usage, "_SUMS", "SELECT none, ?")
        asyncio.run(ledger.flush())
    asyncio.run(ledger.flush())
    assert _rows(tmp_path) == [("laptop", "small", 1, 5, 2)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Both clocks of a host, in seconds."""
    now = {"time": 1_800_000_000.0, "monotonic": 600.0}
    monkeypatch.setattr(time, "time", lambda: now["time"])
    monkeypatch.setattr(time, "monotonic", lambda: now["monotonic"])
    return now


def _ask(charges: Charges, ledger: Ledger, key: Key, tokens: int = 0, addresses: int = 1) -> str:
    try:
        with charges.admitted("laptop", key, addresses):
            ledger.add("laptop", "small", 1, 0, 0, tokens, 0.1, 0)
            charges.charge("laptop", tokens)
    except Refused as error:
        return f"{str(error).partition(' its ')[2]} {error.retry}"
    return ""


def test_limits_hold_for_their_window(clock: dict[str, float], ledger: Ledger) -> None:
    charges = Charges(ledger)
    two = Key(requests_minute=2)
    assert [_ask(charges, ledger, two) for _ in range(3)] == ["", "", "2 requests a minute. 60"]
    clock["monotonic"] += 59.5
    assert _ask(charges, ledger, two) == "2 requests a minute. 1"
    clock["monotonic"] += 0.5
    assert _ask(charges, ledger, two) == ""
    tokens = Key(tokens_minute=100)
    answers = [_ask(charges, ledger, tokens, 80) for _ in range(3)]
    assert answers == ["", "", "100 tokens a minute. 60"]
    assert _ask(charges, ledger, Key(tokens_day=160)).startswith("160 tokens a day. ")
    assert _ask(charges, ledger, Key(requests_day=5)).startswith("5 requests a day. ")
    assert _ask(charges, ledger, Key()) == ""
    # Requests under way count, too.
    charges, key = Charges(Ledger("none")), Key(requests_day=2)
    with charges.admitted("laptop", key, 1), charges.admitted("laptop", key, 1):
        assert _ask(charges, ledger, key).startswith("2 requests a day")
    assert charges.under_way["laptop"] == 0


def test_addresses_share_a_limit(clock: dict[str, float], ledger: Ledger) -> None:
    charges = Charges(ledger)
    assert [_ask(charges, ledger, Key(requests_minute=3), 0, 3) for _ in range(2)][1] != ""
    assert _ask(Charges(ledger), ledger, Key(requests_minute=1), 0, 2) == ""


def test_a_clock_that_is_set_back_starts_no_second_day(
    clock: dict[str, float], ledger: Ledger
) -> None:
    charges, key = Charges(ledger), Key(tokens_day=10, requests_minute=3)
    assert _ask(charges, ledger, key, 20) == ""
    asyncio.run(ledger.flush())
    for seconds in (86400, -86400):
        clock["time"] += seconds
        asyncio.run(ledger.flush())
        assert _ask(charges, ledger, key).startswith("10 tokens a day") == (seconds < 0)
    clock["time"] -= 3600 * 24 * 30
    assert _ask(charges, ledger, key) == ""
    assert _ask(charges, ledger, key) == "3 requests a minute. 60"  # minutes use another clock


def test_days_are_kept_for_more_than_a_year(
    clock: dict[str, float], tmp_path: Path, ledger: Ledger
) -> None:
    for days in (0, 399, 2):
        clock["time"] += days * 86400
        ledger.add("laptop", str(days), 1, 0, 0, 0, 0.1, 0)
        asyncio.run(ledger.flush())
    assert [row[1] for row in _rows(tmp_path)] == ["399", "2"]
    assert [row[1] for row in _rows(tmp_path, usage.today())] == ["2"]
