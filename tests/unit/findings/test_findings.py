"""One type for everything that is wrong: as text, as JSON and as SARIF."""

import json
from dataclasses import replace

import pytest

from sparkwright.checks.configuration import check_host
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.checks.host.judge import judge
from sparkwright.checks.service.diagnose import diagnose
from sparkwright.findings.finding import Finding, Severity, Subject, errors
from sparkwright.findings.render import counts, data, text
from sparkwright.findings.user_error import UserError, mistake
from tests.unit.builders import SPARK, catalog, plan, probe, wanted
from tests.unit.checks.service import builders as ill
from tests.unit.cli.answering import answering, exits

WHOLE = Finding(
    "kv-cache", Severity.ERROR,
    Subject("spark-1", "qwen36", "group_data/sparks.py", "services.qwen36.arguments.max_model_len"),
    "262144 tokens take 5.0 GiB", "at most 3.6 GiB", "vLLM ends at start", "max_model_len: 189440",
    "vLLM's own check",
)  # fmt: skip


def test_a_finding_is_a_block_of_its_parts() -> None:
    assert text([WHOLE]) == (
        "error: kv-cache: spark-1: group_data/sparks.py: services.qwen36.arguments.max_model_len\n"
        "    observed: 262144 tokens take 5.0 GiB\n"
        "    expected: at most 3.6 GiB\n"
        "    reason:   vLLM ends at start\n"
        "    remedy:   max_model_len: 189440\n"
        "    source:   vLLM's own check"
    )
    assert text([WHOLE], hosts=False, indent=2).startswith("  error: kv-cache: group_data/")


def test_what_several_hosts_have_is_one_block_with_all_of_them() -> None:
    result = [WHOLE, WHOLE.on("spark-2"), replace(WHOLE, observed="other").on("spark-2")]
    heads = [line for line in text(result).splitlines() if not line.startswith(" ")]
    assert [head.split(": ")[2] for head in heads] == ["spark-1, spark-2", "spark-2"]


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (Subject(), ""),
        (Subject("spark-1"), "spark-1"),
        (Subject("spark-1", "qwen36"), "spark-1: qwen36"),
        (Subject("spark-1", "qwen36", "a.py", "services.qwen36.port"),
         "spark-1: a.py: services.qwen36.port"),
        (Subject(file="--limit spark-9"), "--limit spark-9"),
    ],
)  # fmt: skip
def test_a_subject_is_said_in_one_way(subject: Subject, message: str) -> None:
    assert str(subject) == message


def test_what_is_silenced_stops_nothing_and_shows_the_users_reason() -> None:
    silenced = replace(WHOLE, silenced="soaked for a week")
    warning = replace(WHOLE, severity=Severity.WARNING)
    assert errors([silenced, WHOLE, warning]) == [WHOLE]
    assert text([silenced]).startswith("silenced: kv-cache: ")
    assert text([silenced]).endswith("\n    silenced: soaked for a week")
    assert counts([silenced, WHOLE, warning, warning]) == "1 error, 2 warnings"


def test_the_level_is_painted_by_the_caller() -> None:
    assert text([WHOLE], paint=lambda level: f"<{level}>").startswith("<error>: kv-cache")


def test_an_mistake_knows_file_and_key() -> None:
    result = mistake("a.py: services.q.port", "'x' is not a number", "write one", "spark-1")
    assert result.subject == Subject("spark-1", None, "a.py", "services.q.port")
    assert (result.id, result.severity) == ("input", Severity.ERROR)
    assert mistake("--limit x", "a", "b").subject == Subject(file="--limit x")
    with pytest.raises(UserError) as raised:
        raise UserError([result, result, result.on("spark-2")])
    assert raised.value.findings == (result, result.on("spark-2"))
    assert str(raised.value).startswith(
        "1 problem, nothing was touched:\n  error: input: spark-1, "
    )


def test_whoever_finds_it_the_json_has_the_same_keys() -> None:
    bad = plan({"q": {**SPARK["qwen36"], "arguments": {"max_num_seqs": None}}})
    result = [
        *check_host(bad, catalog(), assumed_hardware(bad)),
        *judge(wanted(plan()), probe(clock_synchronised=False), 1000.0),
        *diagnose("spark-1", ill.spark(docker=None)),
        mistake("a.py: key", "wrong", "right"),
    ]
    assert {item.id for item in result} == {"speculation-limits", "clock", "docker-silent", "input"}
    entries = json.loads(json.dumps(data(result)))
    for entry in entries:
        keys = "id severity subject observed expected reason remedy source silenced"
        assert list(entry) == keys.split()
        assert list(entry["subject"]) == ["host", "service", "file", "key"]
        assert entry["severity"] in ("error", "warning")
    assert [item.subject.host for item in result] == ["spark-1", "spark-1", "spark-1", None]
    assert all(item.source for item in result[:-1])


def test_the_doctor_prints_text_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, lambda _: {"spark-1": ill.spark(docker=None)})
    assert exits(1, "doctor", "inventory/lab.py").stdout.startswith(
        "spark-1: docker-silent: docker info: no answer\n\n"
        "spark-1: 1 error, 0 warnings\n  error: docker-silent\n"
    )
    (entry,) = json.loads(exits(1, "doctor", "inventory/lab.py", "--json").stdout)
    assert (entry["id"], entry["subject"]["host"]) == ("docker-silent", "spark-1")
