"""``sparkwright notify``: what it says, remembers and leaves alone."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sparkwright.config.notices import Address
from sparkwright.extras.notify import command as notify_command
from sparkwright.findings.user_error import refusal
from sparkwright.results.answers import Answers
from tests.unit.cli.answering import Asked, answering, run, silent
from tests.unit.extras.notify.builders import WEDGE, host


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
    """Two hosts, of which one has a hanging engine; what is sent is kept."""
    return _Site(tmp_path, monkeypatch)


def test_a_host_or_a_fleet_that_does_not_answer_is_said(site: _Site) -> None:
    site.silent = ["spark-2"]
    site.call()
    (site.folder / ".sparkwright/notified.json").unlink()
    site.hosts = {}
    site.call()
    # A test asks no host.
    assert site.call("--test").output == "ntfy at ntfy.sh: sent\n"
    titles = ["spark-2: host-silent (and 1 more)", "fleet-silent", "test"]
    assert site.got == [("ntfy at ntfy.sh", title) for title in titles]


def test_dry_sends_and_remembers_nothing(site: _Site) -> None:
    output = site.call("--dry").output
    assert output.splitlines()[:3] == [
        "ntfy at ntfy.sh: would be sent",
        "spark-1: qwen36: wedge",
        "new: error: spark-1: qwen36: wedge (3 requests run, and no token for 9 min)",
    ]
    assert site.got == []
    assert not (site.folder / ".sparkwright/notified.json").exists()


def test_without_an_address_or_an_answer_of_it_the_command_fails(
    site: _Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify_command, "send", lambda *_: "HTTP 500")
    done = site.call()
    assert (done.exit_code, done.output) == (1, "ntfy at ntfy.sh: failed: HTTP 500\n")
    (site.folder / "lab.py").write_text('hosts = [("spark-1", {})]')
    done = site.call()
    assert done.exit_code == 2
    assert 'write notify = ["ntfy:MY-TOPIC"]' in done.output
