"""One type for everything that is wrong: as text, as JSON and as SARIF."""

from dataclasses import replace

import pytest

from sparkwright.cli.lib.findings import sarif
from sparkwright.findings.finding import Finding, Severity, Subject, errors
from sparkwright.findings.render import counts, text

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


def test_sarif_names_rules_files_and_what_is_silenced() -> None:
    recipe = Subject("spark-1", "qwen36", "recipe qwen36-omni-v1.2", "services.qwen36.image_tag")
    silenced = replace(WHOLE, subject=recipe, silenced="on purpose")
    (run,) = sarif([WHOLE, silenced, Finding("clock", Severity.WARNING)])["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["clock", "kv-cache"]
    first, second, third = run["results"]
    assert first["ruleId"] == "kv-cache"
    assert first["level"] == "error"
    assert "Remedy: max_model_len: 189440" in first["message"]["text"]
    (position,) = first["locations"]
    assert position["physicalLocation"]["artifactLocation"]["uri"] == "group_data/sparks.py"
    # A recipe is no file: scanners would look for it.
    (position,) = second["locations"]
    assert "physicalLocation" not in position
    assert position["logicalLocations"][0]["fullyQualifiedName"].startswith(
        "spark-1: qwen36: recipe"
    )
    assert second["suppressions"] == [{"kind": "external", "justification": "on purpose"}]
    assert "suppressions" not in first
    assert third["level"] == "warning"
