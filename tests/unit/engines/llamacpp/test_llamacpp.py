"""llama.cpp: command line, limits, and memory and a recipe derived from a GGUF header."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from sparkwright.catalog import Mounted
from sparkwright.catalog.entries import KvLayers
from sparkwright.catalog.gguf import Gguf
from sparkwright.checks.configuration import check_host
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.engines import engine
from sparkwright.engines.llamacpp import memory
from sparkwright.plan.service import container_command
from sparkwright.resolve.hub import PinnedFile, ResolvedModel
from sparkwright.resolve.model_facts import ModelFacts
from sparkwright.text.sizes import GIB
from tests.tables import Tables
from tests.unit.builders import catalog, plan, wanted
from tests.unit.engines.derivation.repositories import COMMIT, chat, on_the_hub, planned

cases = Tables(__file__)
ENGINE = engine("llamacpp")
REPOSITORY = "unsloth/Qwen3-8B-GGUF"
#: 36 layers of 120 MB, 8 heads of keys and values of 128 numbers, 600 MB of embeddings and output.
HEADER: dict[str, Any] = {
    "file": "Qwen3-8B-Q4_K_M.gguf", "architecture": "qwen3", "quantization": "Q4_K_M",
    "context": 40960, "layer_bytes": (120_000_000,) * 36, "other_bytes": 600_000_000,
}  # fmt: skip


def repository(**header: Any) -> ResolvedModel:
    """A commit with one GGUF file."""
    own = Gguf.model_validate({**HEADER, **header})
    facts = ModelFacts(
        architecture=own.architecture, model_type=own.architecture, context=own.context,
        chat_template=True, template=("tools", "enable_thinking"), gguf=own,
        sampling={"temperature": 0.6},
    )  # fmt: skip
    kv = (KvLayers(layers=36, heads=8, head_dim=128),)
    return ResolvedModel(
        REPOSITORY, COMMIT, None, {own.file: PinnedFile(own.tensor_bytes)}, kv, facts
    )


def derived(gpu: str = "rtx5070", settings: dict[str, Any] | None = None, **header: Any) -> Any:
    """The service of a model that is given only by name."""
    with on_the_hub(repository(**header)):
        return planned({"model": REPOSITORY, **(settings or {})}, "rtx50", gpu=gpu)


def test_a_name_is_enough_and_the_plan_gives_engine_and_reason() -> None:
    fleet = derived()
    service = chat(fleet)
    assert service.engine == "llamacpp"
    assert dict(service.arguments) == cases.data["derived_arguments"]
    facts = {fact.name: f"{fact.value} ({fact.origin})" for fact in service.derived}
    for name, text in cases.data["derived_facts"].items():
        assert text in facts[name]
    (host,) = fleet.or_raise().values()
    assert not [item for item in host.violations if item.severity == "error"]
    argv = container_command(service).arguments
    expected = "--model /models/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf --alias unsloth/Qwen3-8B-GGUF"
    assert " ".join(argv).startswith(f"{expected} --host /run/engine/http.sock --offline --no-ui")


@pytest.mark.parametrize(("arguments", "gets"), [({}, True), ({"mmproj_auto": False}, False)])
def test_a_projector_is_given_unless_only_text_is_served(
    arguments: dict[str, bool], gets: bool
) -> None:
    service = chat(derived(settings={"arguments": arguments}, projector="mmproj-F16.gguf"))
    assert ("--mmproj" in container_command(service).arguments) is gets


def test_llama_server_compiles_nothing_and_requires_its_key_on_protected_routes() -> None:
    (service,) = wanted(plan({"s": {"recipe": "qwen35-9b-gguf-rtx-12gb"}}, "rtx-1")).services
    assert "MAX_JOBS" not in service.compose
    assert service.gate.key_probe == "/metrics"


@cases("settings", "message")
def test_an_engine_without_gguf_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        derived(settings=settings).or_raise()


@cases("gpu", "header", "arguments", "shown")
def test_layers_that_do_not_fit_the_card_are_left_to_the_cpu_with_a_note(
    gpu: str, header: dict[str, Any], arguments: dict[str, Any], shown: str
) -> None:
    fleet = derived(gpu, **header)
    service = chat(fleet)
    assert {**dict(service.arguments), **arguments} == dict(service.arguments)
    assert shown in "; ".join(f"{fact.name}: {fact.value}" for fact in service.derived)
    (host,) = fleet.or_raise().values()
    assert "llamacpp-layers-in-ram" in {item.id for item in host.violations}
    assert "llamacpp-memory" not in {item.id for item in host.violations}


@cases("gpu", "group", "header", "settings", "rules")
def test_memory_is_judged_by_the_card_or_the_pool(
    gpu: str | None, group: str, header: dict[str, Any], settings: dict[str, Any], rules: list[str]
) -> None:
    with on_the_hub(repository(**header)):
        data = {"gpu": gpu} if gpu else {}
        fleet = planned({"model": REPOSITORY, **settings}, group, **data)
    (host,) = fleet.or_raise().values()
    assert [item.id for item in host.violations] == rules


def test_a_drafter_takes_memory_of_the_card() -> None:
    entries, name = catalog(), "qwen35-9b-gguf-rtx-12gb"
    drafter = Mounted(model="qwen35-4b-gguf-q4", mount="/models/small")
    recipe = entries.recipes[name].model_copy(update={"drafter": drafter})
    changed = replace(entries, recipes={**entries.recipes, name: recipe})
    arguments = {"spec_type": "draft-simple", "model_draft": "/models/small/x.gguf"}
    with patch("tests.unit.builders.catalog", lambda: changed):
        host = plan({"s": {"recipe": name, "arguments": arguments}})
    findings = {item.id: item for item in check_host(host, entries, assumed_hardware(host))}
    assert "6.5 GiB of the drafter and its cache" in findings["llamacpp-memory"].observed


@cases("pooling", "argument", "routes")
def test_a_pooling_model_is_started_and_tested_for_pooling(
    pooling: str, argument: str, routes: list[str]
) -> None:
    arguments = dict(chat(derived(pooling=pooling)).arguments)
    assert arguments[argument] is True
    assert [*ENGINE.kinds(arguments, "chat").values()] == routes
    header = repository(pooling=pooling).facts.gguf  # type: ignore[union-attr]
    assert "llamacpp-pooling" in _rules(gguf=header)


def _rules(**changed: Any) -> set[str]:
    """Rules that a recipe of the catalog breaks with a changed model."""
    host = plan({"s": {"recipe": "qwen35-9b-gguf-rtx-12gb"}})
    entries, name = catalog(), "qwen35-9b-gguf-q4"
    model = entries.models[name].model_copy(update=changed)
    entries = replace(entries, models={**entries.models, name: model})
    return {item.id for item in check_host(host, entries, assumed_hardware(host))}


def test_a_format_that_the_engine_does_not_load_is_an_error() -> None:
    assert "engine-format" in _rules(format="awq", file=None)


@cases("arguments", "context", "sequences", "cache")
def test_slots_share_or_split_the_context(
    arguments: dict[str, Any], context: int, sequences: int, cache: int | None
) -> None:
    limits = ENGINE.limits(arguments)
    assert (limits.context, limits.sequences, limits.cache) == (context, sequences, cache)


@cases("arguments", "gib")
def test_weights_on_the_gpu_are_counted_by_layers(arguments: dict[str, Any], gib: float) -> None:
    (header,) = [repository(expert_bytes=3_600_000_000).facts.gguf]  # type: ignore[union-attr]
    model = catalog().models["qwen35-9b-gguf-q4"].model_copy(update={"gguf": header})
    assert memory.weights_gib(model, arguments) == pytest.approx(gib * 1e9 / GIB)


@pytest.mark.parametrize("pool", [7.9, 9.0, 11.9, 15.9, 23.8])
def test_a_fitting_context_also_fits_with_sliding_windows(pool: float) -> None:
    """Layers with a window need equal memory for a short and a long context."""
    kv = (KvLayers(layers=8, heads=8, head_dim=256),
          KvLayers(layers=40, heads=8, head_dim=256, window=1024))  # fmt: skip
    update = {"kv": kv, "size_gib": 6.8, "context": 131072, "gguf": None}
    model = catalog().models["qwen35-9b-gguf-q4"].model_copy(update=update)
    tokens = memory.fitting_context(model, {}, pool)
    assert tokens is not None
    cache = (memory.kv_bytes(model, {}, tokens) or 0) / GIB
    assert not tokens or 6.8 + memory.OVERHEAD_GIB + cache <= pool
    assert bool(tokens) is (pool > 9.5)
    more = (memory.kv_bytes(model, {}, tokens + 2048) or 0) / GIB
    assert tokens in (0, 131072) or 6.8 + memory.OVERHEAD_GIB + more > pool


def test_short_names_are_written_as_long_names() -> None:
    """``-ngl`` has one dash, and llama-server rejects ``--ngl``."""
    settings = {"recipe": "qwen35-9b-gguf-rtx-12gb", "arguments": {"ngl": 50, "c": 4096}}
    command = container_command(plan({"s": settings}).services[0]).arguments
    assert command[command.index("50") - 1] == "--n-gpu-layers"
    assert command[command.index("4096") - 1] == "--ctx-size"


@cases("types", "bytes_of_a_number")
def test_the_cache_is_as_wide_as_its_types(types: dict[str, str], bytes_of_a_number: float) -> None:
    model = catalog().models["qwen35-9b-gguf-q4"]
    assert memory.kv_bytes(model, types, 1000) == 1000 * 8 * 4 * 256 * bytes_of_a_number


@cases("arguments", "rules")
def test_arguments_are_judged_by_the_real_programs_help(
    arguments: dict[str, Any], rules: list[str]
) -> None:
    assert [item.check for item in ENGINE.parser.check("b11669", arguments, {}, {})] == rules
