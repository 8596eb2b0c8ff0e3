"""Without a plan a host is asked what it runs: one that lies fails alone, and colours nothing."""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.facts.answers import MOST_TEXT
from sparkwright.facts.asking import HostError
from sparkwright.host.lib.records import encode
from sparkwright.run import questions, rollout
from tests.operations.emergencies import host, sparkwright, write_site
from tests.operations.harness import marked
from tests.operations.test_emergency import USAGE, gate, status, unplanned
from tests.unit.security.test_terminal import EVIL, harmless


def lying(**service: Any) -> dict[str, Any]:
    """A status whose one service is called or released as none can be."""
    seen = encode(status())
    named = service.pop("name", "qwen36")
    seen["services"] = {named: {**seen["services"]["qwen36"], **service}}
    return dict(seen)


PATHS = {
    "a name that is a path": lying(name="../../etc"),
    "a name with escapes": lying(name="a\x1b[2J"),
    "a release that is a path": lying(current="../../../../etc"),
    "a kept release that is one": lying(releases={"/etc/passwd": {"at": 1.0, "service": gate()}}),
    "a good one with a line break": lying(good="a\nb"),
}


@pytest.mark.parametrize("case", PATHS)
@pytest.mark.parametrize("question", [questions.facts, questions.deep_smoke])
def test_names_that_none_can_have_fail_the_host(case: str, question: Any) -> None:
    item, run = unplanned(status=PATHS[case])
    with pytest.raises(HostError, match="is no service") as raised:
        question(item, run)
    assert item.programs == ["status"]
    assert "\x1b" not in str(raised.value)
    item, run = unplanned(status=PATHS[case])
    assert rollout.targets_of(item, run, to=None, only=None) is None  # type: ignore[arg-type]


def test_a_release_sends_the_key_of_no_other_file() -> None:
    """A record that names other files and units than its service's is none."""
    for problem in ({"secrets": "/etc/shadow"}, {"unit": "sshd.service"}, {"name": "other"}):
        record = gate(**problem)
        item, run = unplanned(status=lying(releases={"b" * 12: {"at": 1.0, "service": record}}))
        assert rollout.targets_of(item, run, to=None, only=None) is None  # type: ignore[arg-type]
        assert "has the record of another service" in str(item.memory.failure)
        assert item.programs == ["status"]


class Endless(str):
    """An answer of letters, too long for an inventory's file to have it in full."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{marked('@')!r}.replace('@', {str(self)!r} * {MOST_TEXT + 1})"


@pytest.mark.parametrize("arguments", [("status",), ("history",), ("models", "list")], ids=" ".join)
def test_what_hosts_say_is_shown_as_text(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Escapes, an endless answer and wrong types, beside a host that is honest."""
    evil = EVIL.replace("\ud800", "")
    seen = encode(status(root="/opt/sparkwright"))
    seen["history"] = [{**seen["history"][0], "by": evil, "why": [evil]}]
    seen["services"]["qwen36"]["releases"]["b" * 12]["tag"] = evil
    usage = {"things": [{**encode(USAGE)["things"][0], "name": evil, "fault": evil}],
             "foreign": [evil]}  # fmt: skip
    write_site(
        tmp_path,
        host("honest", status=status(root="/opt/sparkwright"), disk_usage=USAGE),
        host("evil", status=seen, disk_usage=usage),
        host("endless", status=Endless("x"), disk_usage=marked("[" * 99_999)),
        host("typed", status=marked('{"now": []}'), disk_usage=marked('{"things": 5}')),
        group_data__all="x = (\n",
    )
    done = sparkwright(tmp_path, *arguments)
    assert done.returncode == 1
    assert "@fake/honest" in done.stdout
    for name in ("endless", "typed"):
        assert f"@fake/{name}: " in done.stderr
    assert harmless(done.stdout)
    assert harmless(done.stderr)
