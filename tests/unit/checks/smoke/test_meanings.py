"""Requests of the deep smoke test, and the meaning, remedy and source of every failure."""

import ast
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.smoke.deep import deep_request, deep_seconds
from sparkwright.checks.smoke.verdict import ANY, DeepResult, checks, render, verdicts
from sparkwright.cli.lib.hosts import Hosts
from sparkwright.host.lib.records import decode
from sparkwright.host.smoke import deep
from sparkwright.host.smoke.client import DeepRequest
from tests.host.smoke.deep_server import request
from tests.tables import Tables
from tests.unit.builders import ROOT, alone, catalog, plan, wanted
from tests.unit.cli.answering import Asked, answering, exits, run
from tests.unit.cli.answering import silent as missing

NOW = datetime(2026, 7, 3, 12, 0, tzinfo=UTC)


def raised() -> set[str]:
    """The causes in the source text of the host's program."""
    result = {"cut", "shape"}  # unexpected results of a check
    host = ROOT / "sparkwright/host"
    for path in (*host.glob("smoke/*.py"), host / "lib/kinds.py", host / "lib/faults.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
            if name in ("Fault", "fail_if"):
                for part in ast.walk(node.args[name == "fail_if"]):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        result.add(part.value)
    return result


def test_the_checks_equal_the_hosts_checks_in_order() -> None:
    assert list(checks()) == ["health", *(probe.name for probe in deep.PROBES), ANY]


def test_every_cause_is_documented_and_can_happen() -> None:
    written = {cause for entry in checks().values() for cause in entry.cases}
    assert written == raised()


def test_a_checks_causes_are_more_specific_than_the_shared_causes() -> None:
    own, common = checks()["image"].cases["marks"], checks()["chat"].cases["marks"]
    assert "vision tower" in own["reason"]
    assert "card of Qwen3.6-35B-A3B-heretic-NVFP4, 'Vision fix'" in own["source"]
    assert own["reason"] != common["reason"]


def failing(**image: Any) -> dict[str, DeepResult]:
    checked = [
        {"name": "health", "verdict": "passed", "seconds": 0.01, "detail": "200"},
        {"name": "image", "verdict": "failed", "seconds": 1.25, "detail": "!!!!", "cause": "marks"},
        {"name": "long-16k", "verdict": "skipped", "seconds": 0.0, "detail": "a context of 8192"},
    ]
    checked[1] |= image
    service = {"release": "a" * 12, "planned": "a" * 12, "recipe": "r", "journal": ["a line"]}
    return {"qwen36": decode(DeepResult, {**service, "checks": checked})}


def test_an_undocumented_failure_has_a_remedy_that_names_the_journal() -> None:
    text = render(verdicts("spark-1", failing(cause=None), NOW))
    assert "reason:   the cause is unknown" in text
    assert "remedy:   journalctl -u sparkwright-qwen36" in text


def test_an_unplanned_release_is_reported() -> None:
    answer = failing()
    answer["qwen36"] = replace(answer["qwen36"], release="b" * 12)
    text = render(verdicts("spark-1", answer, NOW))
    assert f"release {'b' * 12} runs, but the test is for the planned release {'a' * 12}" in text


@pytest.mark.parametrize(
    ("answers", "silent", "code"),
    [
        ({"spark-1": failing(verdict="passed", cause=None)}, [], 0),
        ({"spark-1": failing()}, [], 1),
        ({"spark-1": failing(verdict="passed", cause=None)}, ["spark-2"], 1),
        ({}, ["spark-1"], 1),
    ],
)
def test_the_command_exits_with_1_after_any_failure(
    monkeypatch: pytest.MonkeyPatch,
    here: Path,
    answers: dict[str, Any],
    silent: list[str],
    code: int,
) -> None:
    asked = answering(monkeypatch, lambda _: missing(answers, *silent))
    exits(code, "smoke", "inventory/lab.py", "--limit", "spark-1")
    hosts = Hosts(Path("inventory/lab.py"), (), ("spark-1",))
    meant = asked[0].hosts.means
    assert asked == [Asked("deep_smoke", hosts, {"meant": meant}, {"planless": True})]
    assert len(list(here.glob(".sparkwright/smoke/*.json"))) == len(answers)
    as_json = run("smoke", "inventory/lab.py", "--json")
    assert [load["host"] for load in json.loads(as_json.stdout)] == list(answers)


cases = Tables(__file__)


def of(recipe: str, **arguments: Any) -> DeepRequest:
    service = {"recipe": recipe, "arguments": arguments}
    ((decided, rendered),) = wanted(plan({"one": service})).planned_services
    return deep_request(decided, rendered.gate, catalog())


def test_the_production_recipe_gets_every_check() -> None:
    made = of("qwen36-35b-a3b-heretic-dflash")
    assert made.skip == {}
    assert made.tool_parser == "qwen3_coder"
    assert (made.max_num_seqs, made.context, made.prefix_caching) == (64, 262144, True)
    # The cards of Qwen3.6-35B-A3B and its image: at least 2048 tokens for requests that think.
    assert made.thinking_tokens == 2048


@pytest.mark.parametrize("recipe", sorted(alone()))
def test_every_recipe_can_be_smoke_tested_and_skips_checks_only_with_a_reason(recipe: str) -> None:
    made = of(recipe)
    assert set(made.skip) <= {probe.name for probe in deep.PROBES}
    assert all(made.skip.values())
    model = catalog().models[catalog().recipes[recipe].body.model]
    assert ("image" in made.skip) == ("image" not in model.capabilities)
    assert "concurrency" not in made.skip


@cases("arguments", "name", "why")
def test_checks_without_a_reason_are_left_out(
    arguments: dict[str, Any], name: str, why: str
) -> None:
    assert why in of("qwen36-35b-a3b-heretic-dflash", **arguments).skip[name]


@pytest.mark.parametrize("context", [None, -1, "auto"])
def test_a_context_that_the_engine_sizes_is_read_from_the_server(context: object) -> None:
    assert of("qwen36-35b-a3b-heretic-dflash", max_model_len=context).context is None


def test_a_text_model_gets_no_picture() -> None:
    assert "has no vision" in of("qwen36-27b-nvfp4-dflash-fp8").skip["image"]


def test_an_unset_prefix_cache_keeps_vllms_default() -> None:
    made = of("qwen36-35b-a3b-heretic-dflash", enable_prefix_caching=None)
    assert made.prefix_caching is None
    assert "prefix-cache" not in made.skip


def test_the_deep_request_contains_the_short_request() -> None:
    ((decided, rendered),) = wanted(plan()).planned_services
    short = replace(rendered.gate, warm_ups=0)
    assert vars(deep_request(decided, rendered.gate, catalog())).items() >= vars(short).items()


@pytest.mark.parametrize("sequences", [1, 64, 256])
def test_the_time_limit_covers_every_check(sequences: int) -> None:
    made = request(arguments={"max_num_seqs": sequences}, smoke={"max_tokens": 4096})
    limits = [made.first_answer_seconds + probe.seconds(made) for probe in deep.PROBES]
    assert made.boot_seconds + sum(limits) <= deep_seconds(made)
    assert deep_seconds(made) < made.boot_seconds + 2 * sum(limits)


def test_a_model_that_pools_is_tested_by_its_own_routes() -> None:
    made = of("qwen36-35b-a3b-heretic-dflash", runner="pooling", speculative_config=None)
    assert {probe.name for probe in deep.PROBES} - set(made.skip) == {"aliases", "key"}
    pooled = {"embedding": "/v1/embeddings", "rerank": "/v1/rerank", "score": "/score"}
    assert made.routes == pooled
    assert made.model_files.startswith("/")
    text = of("qwen36-35b-a3b-heretic-dflash")
    assert [*text.routes] == ["chat", "completion"]
