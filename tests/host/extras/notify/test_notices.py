"""Notices to servers of this machine: each receiver gets its own notices, and no part of an address
goes elsewhere.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from socketserver import StreamRequestHandler
from typing import Any

import pytest

from sparkwright.config.notices import address
from sparkwright.extras.notify import send as sending
from sparkwright.extras.notify.send import send
from tests.host.security.hostile import body, line, serving, silent
from tests.host.serving import Handler, free_port, listening


@dataclass
class Received:
    """Received path, headers and body of each request; lines of each mail."""

    status: int = 200
    location: str | None = None
    refused: str | None = None
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    mails: list[list[str]] = field(default_factory=list)
    port: int = 0


class _Http(Handler):
    got: Received

    def do_POST(self) -> None:
        """Accept the request, and answer as the test has set."""
        got = self.got
        got.requests.append((self.path, dict(self.headers), json.loads(self.body())))
        self.reply(got.status, b"{}", {"Location": got.location} if got.location else {})

    do_GET = do_POST


class _Smtp(StreamRequestHandler):
    got: Received

    def handle(self) -> None:
        """Speak just enough of SMTP for the sender."""
        got = self.got
        self.wfile.write(b"220 here\r\n")
        for raw in self.rfile:
            word = raw[:4].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = iter(self.rfile.readline, b".\r\n")
                got.mails.append([line.decode().rstrip("\r\n") for line in lines])
            elif word == b"RCPT" and got.refused:
                self.wfile.write(f"550 {got.refused}\r\n".encode())
                continue
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 fine\r\n")
            if word == b"QUIT":
                return


@pytest.fixture
def got() -> Iterator[Received]:
    """A server that accepts every POST."""
    received = Received()
    with listening(_Http, got=received) as received.port:
        yield received


@pytest.fixture
def mail() -> Iterator[Received]:
    """A mail server that accepts every mail."""
    received = Received()
    with listening(_Smtp, got=received) as received.port:
        yield received


TITLE, BODY = (
    "spark-1: qwen36: wedge",
    "new: error: spark-1: qwen36: wedge\n    -> restart, 5 < 6 & 7",
)
TOKEN = "tk_0123456789abcdefghijklmnopqrs"
SECRET_PATH = "B0123456789abcdefghijklmnop"
NTFY, WEBHOOK = "ntfy:http://127.0.0.1:{}/fleet", "webhook:http://127.0.0.1:{}/x"
MAIL = "mailto:me@lab.example?smtp=127.0.0.1:{}"
REFUSED = "no connection, or the server refuses the notice"


def _sent(text: str, title: str = TITLE, body: str = BODY) -> str | None:
    """Reason why a notice was not sent to an address."""
    return send(address(text, "it"), title, body)


def test_a_webhook_gets_json(got: Received) -> None:
    assert _sent(f"webhook:http://127.0.0.1:{got.port}/hook/me?token=a%26b") is None
    ((path, _, body),) = got.requests
    assert path == "/hook/me?token=a%26b"
    assert (body["title"], body["message"]) == (TITLE, BODY)


def test_ntfy_gets_a_topic_and_its_token(got: Received) -> None:
    assert _sent(f"ntfy:http://{TOKEN}@127.0.0.1:{got.port}/fleet") is None
    ((path, headers, body),) = got.requests
    assert (path, headers["Authorization"]) == ("/", f"Bearer {TOKEN}")
    assert (body["topic"], body["title"], body["message"]) == ("fleet", TITLE, BODY)


def test_a_mail_is_sent_through_the_named_relay(mail: Received) -> None:
    assert _sent(MAIL.format(mail.port)) is None
    mail.refused = "5.7.1 relaying denied"
    assert _sent(MAIL.format(mail.port)) == REFUSED
    (lines,) = mail.mails
    head = lines[: lines.index("")]
    assert f"Subject: {TITLE}" in head
    assert any(line.startswith("To: ") and "me@lab.example" in line for line in head)


def test_a_refused_notice_is_reported(got: Received) -> None:
    for got.status in (500, 302):
        assert str(_sent(WEBHOOK.format(got.port))).startswith(f"HTTP {got.status}")
    assert len(got.requests) == 2
    nobody = free_port()
    assert {_sent(text.format(nobody)) for text in (WEBHOOK, NTFY, MAIL)} == {REFUSED}
    assert _sent("nothing://x/y") == "Apprise does not support this address"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_forwards_no_token(got: Received, status: int) -> None:
    elsewhere = Received()
    with listening(_Http, got=elsewhere) as port:
        got.status, got.location = status, f"http://localhost:{port}/stolen"
        for text in (
            f"ntfy:http://{TOKEN}@127.0.0.1:{got.port}/fleet",
            f"webhook:http://127.0.0.1:{got.port}/{SECRET_PATH}?token={TOKEN}",
        ):
            why = f"HTTP {status}: the server redirects, and redirects are not followed"
            assert _sent(text) == why
    assert len(got.requests) == 2
    assert elsewhere.requests == []


@pytest.mark.parametrize(
    "name",
    ["x\r\nBcc: thief@evil.example\r\n", "x\nX-Injected: 1", "x\r\n\r\nGET /stolen HTTP/1.1\r\n"],
)
def test_no_text_becomes_a_header(got: Received, mail: Received, name: str) -> None:
    """Even a host's text that passed the checks of notices is filtered."""
    for text, port in ((NTFY, got.port), (WEBHOOK, got.port), (MAIL, mail.port)):
        _sent(text.format(port), name, name)
    for path, headers, _ in got.requests:
        assert path in ("/", "/x")
        assert not {"bcc", "x-injected"} & {key.lower() for key in headers}
    assert len(got.requests) == 2
    for lines in mail.mails:
        head = lines[: lines.index("")]
        assert not any(item.lower().startswith(("bcc:", "x-injected:")) for item in head)


@pytest.mark.parametrize("attack", [body, line], ids=["a body", "a head"])
def test_an_endless_answer_ends_only_its_attempt(
    attack: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_MEMORY", 200 << 20)
    with serving(attack) as port:
        assert _sent(WEBHOOK.format(port))


def test_a_trickled_answer_ends_only_its_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "TIMEOUT", 1.0)
    with serving(silent) as port:
        text = _sent(WEBHOOK.format(port))
    assert text == "no answer within 1 s"


def test_no_part_of_an_address_appears_in_output_or_process_list(
    got: Received, mail: Received, tmp_path: Path
) -> None:
    """Output, messages and files of the whole command, with servers that refuse notices."""
    got.status, mail.refused = 403, "no"
    lines = (
        f"ntfy:http://{TOKEN}@127.0.0.1:{got.port}/fleet",
        f"webhook:http://127.0.0.1:{got.port}/{SECRET_PATH}",
        f"mailto://me:{TOKEN}@127.0.0.1:{mail.port}?to=a@lab.example&mode=insecure",
    )
    secrets = tmp_path / "addresses"
    secrets.write_text("\n".join(["# mine", *lines]))
    secrets.chmod(0o600)
    inventory = tmp_path / "lab.py"
    inventory.write_text(f'hosts = [("spark-1", {{"services": {{}}, "notify_file": "{secrets}"}})]')
    done = subprocess.Popen(
        [sys.executable, "-m", "sparkwright", "notify", "--test", str(inventory)],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    shown = Path(f"/proc/{done.pid}/cmdline").read_text()
    output, _ = done.communicate(timeout=60)
    assert done.returncode == 1
    assert len(got.requests) == 2, output
    assert "ntfy at 127.0.0.1: failed: HTTP 403" in output
    assert "webhook at 127.0.0.1: failed: HTTP 403" in output
    assert "mailto, address 4: failed" in output
    for secret in (TOKEN, SECRET_PATH):
        assert secret not in output + shown
        for file in tmp_path.rglob("*"):
            assert file == secrets or not file.is_file() or secret not in file.read_text()
