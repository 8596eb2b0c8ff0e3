"""Notices: a receiver gets what is meant for it, and nothing of an address goes elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkwright.config.notices import address
from sparkwright.extras.notify import send as sending
from sparkwright.extras.notify.send import send
from tests.host.extras.notify.receivers import http, smtp
from tests.host.security.hostile import body, line, serving, silent

TOKEN = "tk_0123456789abcdefghijklmnopqrs"
SECRET_PATH = "B0123456789abcdefghijklmnop"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_takes_no_token_elsewhere(status: int) -> None:
    with http() as got, http() as elsewhere:
        got.status, got.location = status, f"http://localhost:{elsewhere.port}/stolen"
        for text in (
            f"ntfy:http://{TOKEN}@127.0.0.1:{got.port}/fleet",
            f"webhook:http://127.0.0.1:{got.port}/{SECRET_PATH}?token={TOKEN}",
        ):
            message = send(address(text, "it"), "title", "body")
            assert (
                message == f"HTTP {status}: it sends on to another address, which is not followed"
            )
    assert len(got.requests) == 2
    assert elsewhere.requests == []


@pytest.mark.parametrize(
    "name",
    ["x\r\nBcc: thief@evil.example\r\n", "x\nX-Injected: 1", "x\r\n\r\nGET /stolen HTTP/1.1\r\n"],
)
def test_no_text_becomes_a_header(name: str) -> None:
    """Even one that got past what notices are made of."""
    with http() as got, smtp() as mail:
        send(address(f"ntfy:http://127.0.0.1:{got.port}/fleet", "it"), name, name)
        send(address(f"webhook:http://127.0.0.1:{got.port}/x", "it"), name, name)
        send(address(f"mailto:a@lab.example?smtp=127.0.0.1:{mail.port}", "it"), name, name)
    for path, headers, _ in got.requests:
        assert path in ("/", "/x")
        assert not {"bcc", "x-injected"} & {key.lower() for key in headers}
    assert len(got.requests) == 2
    for lines in mail.mails:
        head = lines[: lines.index("")]
        assert not any(item.lower().startswith(("bcc:", "x-injected:")) for item in head)


@pytest.mark.parametrize("attack", [body, line], ids=["a body", "a head"])
def test_an_answer_without_end_ends_the_try_alone(
    attack: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_MEMORY", 200 << 20)
    with serving(attack) as port:
        assert send(address(f"webhook:http://127.0.0.1:{port}/x", "it"), "title", "body")


def test_an_answer_drop_by_drop_ends_the_try_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "TIMEOUT", 1.0)
    with serving(silent) as port:
        text = send(address(f"webhook:http://127.0.0.1:{port}/x", "it"), "title", "body")
    assert text == "no answer within 1 s"


def test_nothing_of_an_address_is_printed_or_in_the_process_list(tmp_path: Path) -> None:
    """The whole command, against servers that refuse: its output, its own words, its files."""
    with http() as got, smtp() as mail:
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
        inventory.write_text(
            f'hosts = [("spark-1", {{"services": {{}}, "notify_file": "{secrets}"}})]'
        )
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
