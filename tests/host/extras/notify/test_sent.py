"""Notices as they arrive: at a webhook, an ntfy server and a mail server."""

import pytest

from sparkwright.config.notices import address
from sparkwright.extras.notify.send import send
from tests.host.extras.notify.receivers import http, smtp

TITLE, BODY = (
    "spark-1: qwen36: wedge",
    "new: error: spark-1: qwen36: wedge\n    -> restart, 5 < 6 & 7",
)


def test_a_webhook_gets_json() -> None:
    with http() as got:
        where = address(f"webhook:http://127.0.0.1:{got.port}/hook/me?token=a%26b", "it")
        assert send(where, TITLE, BODY) is None
    ((path, _, body),) = got.requests
    assert path == "/hook/me?token=a%26b"
    assert (body["title"], body["message"]) == (TITLE, BODY)


def test_ntfy_gets_a_topic_and_its_token() -> None:
    with http() as got:
        where = address(f"ntfy:http://tk_secret0123@127.0.0.1:{got.port}/fleet", "it")
        assert send(where, TITLE, BODY) is None
    ((path, headers, body),) = got.requests
    assert path == "/"
    assert headers["Authorization"] == "Bearer tk_secret0123"
    assert (body["topic"], body["title"], body["message"]) == ("fleet", TITLE, BODY)


def test_a_mail_goes_by_the_relay_that_is_named() -> None:
    with smtp() as got:
        where = address(f"mailto:me@lab.example?smtp=127.0.0.1:{got.port}", "it")
        assert send(where, TITLE, BODY) is None
    (lines,) = got.mails
    head = lines[: lines.index("")]
    assert f"Subject: {TITLE}" in head
    assert any(line.startswith("To: ") and "me@lab.example" in line for line in head)


@pytest.mark.parametrize(
    ("status", "why"), [(500, "HTTP 500"), (403, "HTTP 403"), (302, "HTTP 302")]
)
def test_a_server_that_does_not_take_it_is_told(status: int, why: str) -> None:
    with http() as got:
        got.status = status
        text = send(address(f"webhook:http://127.0.0.1:{got.port}/x", "it"), TITLE, BODY)
    assert text is not None
    assert text.startswith(why)
    assert len(got.requests) == 1


def test_nobody_there_is_told() -> None:
    with http() as got:
        port = got.port
    for text in (
        f"webhook:http://127.0.0.1:{port}/x",
        f"ntfy:http://127.0.0.1:{port}/x",
        f"mailto:me@lab.example?smtp=127.0.0.1:{port}",
    ):
        assert send(address(text, "it"), TITLE, BODY) == ("no connection, or the server refuses it")
    assert send(address("nothing://x/y", "it"), TITLE, BODY) == (
        "this is no address that Apprise can send to"
    )


def test_a_mail_server_that_refuses_is_told() -> None:
    with smtp() as got:
        got.refused = "5.7.1 relaying denied"
        where = address(f"mailto:me@lab.example?smtp=127.0.0.1:{got.port}", "it")
        assert send(where, TITLE, BODY) == "no connection, or the server refuses it"
    assert got.mails == []
