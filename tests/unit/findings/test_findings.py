"""One type for all faults, as text and as JSON."""

import json
from dataclasses import replace

import pytest

from sparkwright.findings.finding import Finding, Severity, Subject, errors
from sparkwright.findings.render import counts, text
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


def test_equal_findings_of_several_hosts_share_one_block() -> None:
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
def test_a_subject_has_one_text_form(subject: Subject, message: str) -> None:
    assert str(subject) == message


def test_a_silenced_finding_stops_no_run_and_shows_the_users_reason() -> None:
    silenced = replace(WHOLE, silenced="soaked for a week")
    warning = replace(WHOLE, severity=Severity.WARNING)
    assert errors([silenced, WHOLE, warning]) == [WHOLE]
    assert text([silenced]).startswith("silenced: kv-cache: ")
    assert text([silenced]).endswith("\n    silenced: soaked for a week")
    assert counts([silenced, WHOLE, warning, warning]) == "1 error, 2 warnings"


def test_the_doctor_prints_text_and_json(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, lambda _: {"spark-1": ill.spark(docker=None)})
    assert exits(1, "doctor", "inventory/lab.py").stdout.startswith(
        "spark-1: docker-silent: docker info does not answer\n\n"
        "spark-1: 1 error, 0 warnings\n  error: docker-silent\n"
    )
    (entry,) = json.loads(exits(1, "doctor", "inventory/lab.py", "--json").stdout)
    assert (entry["id"], entry["subject"]["host"]) == ("docker-silent", "spark-1")
