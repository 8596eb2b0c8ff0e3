"""Requests of the smoke test follow from a service's plan and the catalog."""

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.checks.smoke.deep import deep_request, deep_seconds
from sparkwright.host.smoke import deep
from sparkwright.host.smoke.client import DeepRequest
from tests.host.smoke.deep import request
from tests.tables import Tables
from tests.unit.builders import alone, catalog, plan, wanted

cases = Tables(__file__)


def of(recipe: str, **arguments: Any) -> DeepRequest:
    service = {"recipe": recipe, "arguments": arguments}
    ((decided, rendered),) = wanted(plan({"one": service})).planned_services
    return deep_request(decided, rendered.gate, catalog())


def test_the_production_recipe_is_asked_for_everything() -> None:
    made = of("qwen36-35b-a3b-heretic-dflash")
    assert made.skip == {}
    assert made.tool_parser == "qwen3_coder"
    assert (made.max_num_seqs, made.context, made.prefix_caching) == (64, 262144, True)
    # The cards of Qwen3.6-35B-A3B and its image: at least 2048 tokens for requests that think.
    assert made.thinking_tokens == 2048


@pytest.mark.parametrize("recipe", sorted(alone()))
def test_every_recipe_can_be_asked_and_skips_only_with_a_reason(recipe: str) -> None:
    made = of(recipe)
    assert set(made.skip) <= {check.name for check in deep.CHECKS}
    assert all(made.skip.values())
    model = catalog().models[catalog().recipes[recipe].body.model]
    assert ("image" in made.skip) == ("image" not in model.capabilities)
    assert "concurrency" not in made.skip


@cases("arguments", "name", "why")
def test_what_a_service_has_no_reason_for_is_left_out(
    arguments: dict[str, Any], name: str, why: str
) -> None:
    assert why in of("qwen36-35b-a3b-heretic-dflash", **arguments).skip[name]


@pytest.mark.parametrize("context", [None, -1, "auto"])
def test_a_context_that_the_engine_sizes_is_asked_of_the_server(context: object) -> None:
    assert of("qwen36-35b-a3b-heretic-dflash", max_model_len=context).context is None


def test_a_text_model_is_shown_no_picture() -> None:
    assert "has no vision" in of("qwen36-27b-nvfp4-dflash-fp8").skip["image"]


def test_a_prefix_cache_that_nobody_mentions_is_left_to_vllm() -> None:
    made = of("qwen36-35b-a3b-heretic-dflash", enable_prefix_caching=None)
    assert made.prefix_caching is None
    assert "prefix-cache" not in made.skip


def test_the_short_request_is_part_of_it() -> None:
    ((decided, rendered),) = wanted(plan()).planned_services
    short = replace(rendered.gate, warm_ups=0)
    assert vars(deep_request(decided, rendered.gate, catalog())).items() >= vars(short).items()


@pytest.mark.parametrize("sequences", [1, 64, 256])
def test_the_whole_is_given_at_least_what_its_checks_are(sequences: int) -> None:
    made = request(arguments={"max_num_seqs": sequences}, smoke={"max_tokens": 4096})
    limits = [made.first_answer_seconds + check.seconds(made) for check in deep.CHECKS]
    assert made.boot_seconds + sum(limits) <= deep_seconds(made)
    assert deep_seconds(made) < made.boot_seconds + 2 * sum(limits)


def test_a_model_that_pools_is_asked_by_its_own_routes() -> None:
    made = of("qwen36-35b-a3b-heretic-dflash", runner="pooling", speculative_config=None)
    assert {check.name for check in deep.CHECKS} - set(made.skip) == {"aliases", "key"}
    pooled = {"embedding": "/v1/embeddings", "rerank": "/v1/rerank", "score": "/score"}
    assert made.routes == pooled
    assert made.model_files.startswith("/")
    text = of("qwen36-35b-a3b-heretic-dflash")
    assert [*text.routes] == ["chat", "completion"]
