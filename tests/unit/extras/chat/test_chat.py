"""`sparkwright chat`: with a real server over HTTP, piped and at a terminal."""

import json
import re
from pathlib import Path

import pytest

from tests.tables import Tables
from tests.unit.builders import catalog
from tests.unit.cli.test_json import judge
from tests.unit.extras.chat.model import Model
from tests.unit.site_terminal import KEY, chat, terminal, written

cases = Tables(__file__)

#: A program that connects as `ssh -W` does, and records its arguments.
SSH = """#!/usr/bin/env python3
import os, socket, sys, threading
open("ssh.txt", "a").write(" ".join(sys.argv[1:]) + "\\n")
host, _, port = sys.argv[sys.argv.index("-W") + 1].rpartition(":")
there = socket.create_connection((host, int(port)))
def back():
    while data := there.recv(4096):
        os.write(1, data)
threading.Thread(target=back, daemon=True).start()
while data := os.read(0, 4096):
    there.sendall(data)
"""


def with_ssh(site: Path, program: str = SSH) -> None:
    """A user's program with the name ssh."""
    (site / "bin").mkdir()
    (site / "bin/ssh").write_text(program)
    (site / "bin/ssh").chmod(0o755)


def test_an_answer_goes_to_stdout_and_its_figures_to_stderr(site: Path, model: Model) -> None:
    model.deltas = [{"reasoning": "Hm."}, {"content": "Hello,\n"}, {"content": "\tworld"}]
    model.wait = 0.05
    done = chat(site, "--prompt", "Say hello")
    assert (done.exit_code, done.stdout) == (0, "Hello,\n\tworld\n")
    figures = r"\(first token after \d+ ms, [\d.]+ tokens/s, 11 tokens\)\n"
    assert re.search(figures, done.stderr), done.stderr
    assert "qwen36-35b-heretic at box\n" in done.stderr
    assert "Hm." not in done.stderr
    (body,) = model.asked
    assert body["messages"] == [{"role": "user", "content": "Say hello"}]
    assert body["stream"] is True


@pytest.mark.parametrize("name", ["qwen36-35b-heretic", "qwen36-fast"])
def test_a_served_name_has_its_own_sampling(site: Path, model: Model, name: str) -> None:
    advised = catalog().recipes["qwen36-35b-a3b-heretic-dflash"].aliases[name]
    assert chat(site, "--alias", name, message="From a pipe").exit_code == 0
    (body,) = model.asked
    assert body["model"] == name
    assert body["messages"][0]["content"] == "From a pipe"
    assert body["temperature"] == advised.temperature
    thinks = {"enable_thinking": True} if advised.thinking else None
    assert body.get("chat_template_kwargs") == thinks


@cases("arguments", "message")
def test_mistakes_are_reported(site: Path, arguments: tuple[str, ...], message: str) -> None:
    done = chat(site, *arguments, message="x")
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_chat_makes_no_missing_key(site: Path, model: Model) -> None:
    (site / ".sparkwright/api_key").unlink()
    done = chat(site, "--prompt", "x")
    assert done.exit_code == 2
    assert "this folder has no API key for a fleet" in done.stderr
    assert not (site / ".sparkwright/api_key").exists()
    assert chat(site, "--prompt", "x", SPARKWRIGHT_API_KEY=KEY).exit_code == 0


@cases("change", "message")
def test_an_unexpected_answer_is_reported(
    site: Path, model: Model, change: dict[str, object], message: str
) -> None:
    vars(model).update(change, tokens=None)
    done = chat(site, "--prompt", "x")
    assert done.exit_code == (0 if "token" in message else 1)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_key_of_another_fleet_is_reported(site: Path) -> None:
    done = chat(site, "--prompt", "x", SPARKWRIGHT_API_KEY="sk-of-another-fleet-12345")
    assert done.exit_code == 1
    assert "refuses the API key" in done.stderr


def test_only_a_complete_answer_is_a_document(site: Path, model: Model) -> None:
    model.deltas = [{"reasoning": "Hm."}, {"content": "Hello,\n"}, {"content": "world"}]
    document = json.loads(chat(site, "--prompt", "Say hello", "--json").stdout)
    judge("chat", document)
    assert (document["text"], document["reasoning"]) == ("Hello,\nworld", "Hm.")
    assert (document["host"], document["tokens"]) == ("box", 11)
    model.refuses = (400, "no")
    done = chat(site, "--json", message="Say hello")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "refused with HTTP 400" in done.stderr


def test_one_message_has_the_errors_of_the_connection_and_of_ssh(tmp_path: Path) -> None:
    site = written(tmp_path / "site", 9)  # nothing listens at "discard"
    with_ssh(site, "#!/bin/sh\necho 'box: Permission denied (publickey).' >&2\nexit 255\n")
    done = chat(site, "--prompt", "x")
    assert done.exit_code == 1
    assert "Connection refused" in done.stderr
    assert "or through ssh: box: Permission denied (publickey)." in done.stderr
    assert "sparkwright doctor box" in done.stderr


@cases("best", "code", "message")
def test_a_model_of_another_kind_gets_a_request_of_its_kind(
    tmp_path: Path, model: Model, best: int, code: int, message: str
) -> None:
    more = ', "arguments": {"runner": "pooling", "speculative_config": None}'
    site = written(tmp_path / "site", model.port, "127.0.0.1", more)
    scores = [{"index": n, "relevance_score": 0.9 if n == best else 0.1} for n in range(3)]
    model.answer = {"results": scores}
    done = chat(site)
    assert done.exit_code == code
    assert message in (done.stderr if code else done.stdout)
    assert model.seen[-1][1] == "/v1/rerank"


def test_a_conversation_sends_its_earlier_messages(site: Path, model: Model) -> None:
    model.deltas = [{"reasoning": "Let me see."}, {"content": "One."}]
    with terminal(site, "chat") as shown:
        for number, typed in enumerate(("First\n", "Second\n", "\x04"), 1):
            shown.until("> ", number)
            shown.type(typed)
        assert shown.ended() == 0
    assert "\x1b[2mLet me see.\x1b[0m" in shown.got
    assert [message["content"] for message in model.asked[1]["messages"]] == [
        "First", "One.", "Second",
    ]  # fmt: skip


def test_ctrl_c_ends_an_answer_and_a_second_ctrl_c_the_chat(site: Path, model: Model) -> None:
    model.deltas, model.wait = [{"content": f"{n} "} for n in range(1000)], 0.05
    with terminal(site, "chat") as shown:
        shown.until("> ")
        shown.type("Count\n")
        shown.until("3 ")
        shown.type("\x03")
        shown.until("(stopped; first token after ")
        shown.until("> ", 2)
        model.deltas = [{"content": "Still here."}]
        shown.type("And now?\n")
        shown.until("Still here.")
        shown.until("> ", 3)
        shown.interrupt()
        assert shown.ended() == 130
    assert "Traceback" not in shown.got
    assert model.left() == 1
    assert model.asked[1]["messages"][1]["content"].startswith("0 1 2 3 ")


@pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_no_color_disables_colours(site: Path, model: Model, plain: dict[str, str]) -> None:
    model.deltas = [{"reasoning": "Let me see."}, {"content": "One."}]
    with terminal(site, "chat", "--prompt", "x", env=plain) as shown:
        assert shown.ended() == 0
    assert "Let me see.\r\n\r\nOne.\r\n" in shown.got
    assert "\x1b" not in shown.got
