"""``sparkwright chat --json``: one document, as docs/json.md says."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.test_json import judge
from tests.unit.extras.chat.model import Model, speaking
from tests.unit.site_terminal import chat, written


def test_an_answer_is_one_document(tmp_path: Path) -> None:
    with speaking(Model()) as model:
        site = written(tmp_path / "site", model.port)
        model.deltas = [{"reasoning": "Hm."}, {"content": "Hello,\n"}, {"content": "world"}]
        done = chat(site, "--prompt", "Say hello", "--json")
    document = json.loads(done.stdout)
    judge("chat", document)
    assert (document["text"], document["reasoning"]) == ("Hello,\nworld", "Hm.")
    assert (document["host"], document["tokens"]) == ("box", 11)


def test_an_answer_that_breaks_off_is_no_document(tmp_path: Path) -> None:
    with speaking(Model()) as model:
        site = written(tmp_path / "site", model.port)
        model.deltas = [{"content": "Hello"}]
        model.refuses = (400, "no")
        done = chat(site, "--json", said="Say hello")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "refused with HTTP 400" in done.stderr
