"""`sparkwright notify`: its output and record, and no key, prompt or address in a notice."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sparkwright.config.notices import Address, addresses
from sparkwright.config.parse import parse_settings
from sparkwright.extras.notify import command as notify_command
from sparkwright.extras.notify.notices import News, Recipient, body, current, news, title
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import UserError, refusal
from sparkwright.results.answers import Answers
from tests.unit.cli.answering import Asked, answering, run, silent
from tests.unit.extras.notify.watched_hosts import NOW, WEDGE, finding, host


class _Site:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.got = folder, list[tuple[str, str]]()
        self.hosts: dict[str, Any] = {"spark-1": host(WEDGE)}
        self.silent: list[str] = []
        (folder / "lab.py").write_text(
            'hosts = [("spark-1", {"notify": ["ntfy:lab"]}), ("spark-2", {"notify": ["ntfy:lab"]})]'
        )
        monkeypatch.chdir(folder)
        answering(monkeypatch, self.answer)
        monkeypatch.setattr(notify_command, "send", self.send)

    def answer(self, _: Asked) -> Answers[Any]:
        if not self.hosts:
            raise refusal("fleet.lock", "no YAML", "write it")
        return silent(self.hosts, *self.silent)

    def send(self, where: Address, title: str, _: str) -> str | None:
        self.got.append((where.shown, title))
        return None

    def call(self, *arguments: str) -> Result:
        return run("notify", "lab.py", *arguments)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Site:
    """Two hosts, one of them with a hanging engine; sent notices are recorded."""
    return _Site(tmp_path, monkeypatch)


def test_a_silent_host_or_fleet_is_reported(site: _Site) -> None:
    site.silent = ["spark-2"]
    site.call()
    (site.folder / ".sparkwright/notified.json").unlink()
    site.hosts = {}
    site.call()
    # `--test` sends no request to hosts.
    assert site.call("--test").output == "ntfy at ntfy.sh: sent\n"
    titles = ["spark-2: host-silent (and 1 more)", "fleet-silent", "test"]
    assert site.got == [("ntfy at ntfy.sh", title) for title in titles]


def test_a_dry_run_sends_and_records_nothing(site: _Site) -> None:
    output = site.call("--dry").output
    assert output.splitlines()[:3] == [
        "ntfy at ntfy.sh: would be sent",
        "spark-1: qwen36: wedge",
        "new: error: spark-1: qwen36: wedge (3 requests ran without a token for 9 min)",
    ]
    assert site.got == []
    assert not (site.folder / ".sparkwright/notified.json").exists()


def test_the_command_fails_without_an_address_or_after_an_error(
    site: _Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify_command, "send", lambda *_: "HTTP 500")
    done = site.call()
    assert (done.exit_code, done.output) == (1, "ntfy at ntfy.sh: failed: HTTP 500\n")
    (site.folder / "lab.py").write_text('hosts = [("spark-1", {})]')
    done = site.call()
    assert done.exit_code == 2
    assert 'write notify = ["ntfy:MY-TOPIC"]' in done.output


KEY = "sk-0123456789abcdefghijklmnopqrstuvwxyz"
PROMPT = "my doctor says that the tumour is back"
SECRET = "B0123456789abcdefghijklm"
#: Addresses with SECRET, which must not appear in any output.
SECRETS = (
    f"ntfy:https://{SECRET}@ntfy.example/fleet",
    f"ntfy:https://:{SECRET}@ntfy.example/fleet",
    f"webhook:https://hooks.example/services/T01/{SECRET}",
    f"webhook:https://me:{SECRET}@hooks.example/x",
    f"webhook:https://hooks.example/x?token={SECRET}",
    f"mailto://me:{SECRET}@mail.example?to=a@b.example",
    f"mailto://mail.example?to=a@b.example&pass={SECRET}",
    f"tgram://{SECRET}/1234",
    f"mailto:a@b.example?smtp=me:{SECRET}@mail.example",
    f"webhook:{SECRET}",
    f"{SECRET}",
)


def message_of(*findings: Finding) -> str:
    """Title and body of the notice."""
    notice = news(Recipient(), findings, frozenset(), NOW)
    return f"{title(notice)}\n{body(notice, NOW)}"


@pytest.mark.parametrize("message", [KEY, PROMPT, f"--api-key {KEY}", f'{{"prompt": "{PROMPT}"}}'])
def test_no_part_of_a_log_line_is_sent(message: str) -> None:
    """The log line is in every field that a host fills, beside figures that notices contain."""
    changes: tuple[dict[str, Any], ...] = (
        {"seen": f"{message} 3 requests ran without a token for 9 min {message}"},
        {"name": message}, {"service": message}, {"severity": message},
        {"name": "gpu-silent", "service": None, "seen": f"nvidia-smi: {message}"},
        {"name": "disk-full", "seen": f"/{message}: 3 of 90 GiB free"},
        {"name": "drift", "seen": f"release {message} instead of x"},
    )  # fmt: skip
    entry = {
        "service": "qwen36", "from_release": message, "to": "b" * 12, "by": message, "at": NOW - 60,
        "why": [message], "down_seconds": 3.0, "result": message, "reasons": [message],
    }  # fmt: skip
    unit = {"ActiveState": "inactive", "Result": message}
    service = {"unit": unit, "health": {"code": None, "message": message}}
    problems = [replace(WEDGE, **change) for change in changes]
    sick = host(*problems, history=[entry], service=service)
    result, _ = current({"spark-1": sick})
    assert len(result) >= 6
    text = message_of(*result)
    assert "a token for 9 min" in text
    assert "3 of 90 GiB free" in text
    assert not [secret for secret in (KEY, PROMPT, "tumour", "api-key") if secret in text]


@pytest.mark.parametrize("name", ["x\r\nBcc: a@b.example", "x\x1b]0;pwned\x07", "x\u202ey\u2028z"])
def test_a_name_becomes_one_line_without_control_characters(name: str) -> None:
    item = replace(finding(name), observed=name, reason=name, remedy=name)
    for kind in ("new", "worse", "over"):
        notice = [News(kind, item, NOW)]
        assert title(notice).isprintable()
        assert len(body(notice, NOW).splitlines()) == (1 if kind == "over" else 3)
        assert all(line.isprintable() for line in body(notice, NOW).split("\n"))


def test_a_flood_of_findings_causes_one_short_notice() -> None:
    flood = [finding(f"h{n % 500}", f"check-{n % 400}", observed=f"{n}") for n in range(5000)]
    text = message_of(*flood)
    assert len(text.splitlines()) <= 32
    assert len(text) < 10_000
    assert "more findings: sparkwright status" in text


def test_a_host_that_floods_gets_no_more_room_than_other_hosts() -> None:
    many = [
        replace(WEDGE, name=f"x{n}", seen=f"{n} requests ran without a token for 9 min")
        for n in range(20_000)
    ]
    result, _ = current({"spark-1": host(*many)})
    # Unknown ids share one entry.
    assert len(message_of(*result).splitlines()) <= 4


@pytest.mark.parametrize("text", SECRETS)
def test_an_address_with_a_secret_is_refused_in_settings_and_not_repeated(text: str) -> None:
    data = {"services": {}, "notify": [text]}
    for refused in (
        lambda: addresses([("spark-1", data)]), lambda: parse_settings("spark-1", data, str)
    ):  # fmt: skip
        with pytest.raises(UserError) as error:
            refused()
        assert SECRET not in f"{error.value} {error.value.findings!r}"


@pytest.mark.parametrize("text", SECRETS)
def test_an_address_from_a_file_shows_no_part_of_its_secret(text: str, tmp_path: Path) -> None:
    file = tmp_path / "addresses"
    file.write_text(f"ntfy:lab\n{text}\n")
    file.chmod(0o600)
    result, output = _tried(file)
    assert SECRET not in output
    if result is None:
        assert f"{file}, line 2" in output
    else:
        assert SECRET not in f"{result.shown} {result.key}"
        assert result.url.value.count(SECRET) == 1


def _tried(file: Path) -> tuple[Address | None, str]:
    """The second address of a file, or None, and the output for the user."""
    try:
        result = addresses([("spark-1", {"notify_file": str(file)})])
    except UserError as error:
        return None, str(error)
    return result[1], repr(result)
