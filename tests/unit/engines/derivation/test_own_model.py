"""A service that names a model's repository: derived from its files, or from vLLM's own recipe."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.catalog.gpus import GPUS
from sparkwright.checks.smoke.deep import deep_request
from sparkwright.config.settings import THINKING_TOKENS, HostSettings
from sparkwright.engines.vllm.derive import families
from sparkwright.engines.vllm.table import table
from sparkwright.findings.finding import errors
from sparkwright.plan.service import render_service
from sparkwright.resolve.lock import Lock, from_resolution, read_lock, render_lock
from sparkwright.site.fleet import Fleet
from sparkwright.site.resolution import ask, pinned
from tests.tables import Tables
from tests.unit.builders import resolution
from tests.unit.engines.derivation import repositories as hub
from tests.unit.git_registries import git, git_registry

cases = Tables(__file__)

FROM_CONFIG = f"config.json of {hub.REPOSITORY}@abc1234"


def test_the_name_is_enough_and_every_value_has_its_origin() -> None:
    with hub.on_the_hub(hub.repository()):
        fleet = hub.planned()
    service = hub.chat(fleet)
    assert not errors(fleet.hosts["spark-1"].violations)
    assert dict(service.arguments) == cases.data["derived_arguments"]
    assert service.origins["argument.max_model_len"] == FROM_CONFIG
    derived = {fact.name: f"{fact.value} ({fact.origin})" for fact in service.derived}
    for name, text in cases.data["derived_facts"].items():
        assert text in derived[name]
    assert service.served_names == (hub.REPOSITORY,)
    assert service.body.mount == "/models/Qwen3-8B-FP8"


@cases("service", "argument", "value")
def test_the_services_own_settings_override_each_derived_value(
    service: dict[str, Any], argument: str, value: object
) -> None:
    with hub.on_the_hub(hub.repository()):
        result = hub.chat(hub.planned(service))
    assert dict(result.arguments)[argument] == value
    assert result.origins[f"argument.{argument}"].startswith("group_data/sparks.py")


def test_the_user_may_set_image_tag_names_and_revision() -> None:
    with hub.on_the_hub(hub.repository()) as asked:
        result = hub.chat(hub.planned(cases.data["own_settings"]))
    assert result.image.tag == "v0.28.0"
    assert result.served_names == ("mine",)
    assert result.body.revision == "v2"
    assert asked == [(hub.REPOSITORY, "v2")]


def test_a_removed_parser_removes_its_claim() -> None:
    with hub.on_the_hub(hub.repository()):
        fleet = hub.planned({"arguments": {"tool_call_parser": None}})
    result = hub.chat(fleet)
    assert not {"tool_call_parser", "enable_auto_tool_choice"} & set(dict(result.arguments))
    assert "tools" not in fleet.hosts["spark-1"].catalog.models[result.body.name].capabilities


@cases("changes", "template", "can")
def test_smoke_checks_the_claimed_abilities_only(
    changes: dict[str, Any], template: str, can: list[str]
) -> None:
    with hub.on_the_hub(hub.repository(config={**hub.CONFIG, **changes}, template=template)):
        fleet = hub.planned()
    (host,), service = fleet.hosts.values(), hub.chat(fleet)
    assert [*host.catalog.models[service.body.name].capabilities] == can
    release = render_service(host.plan, service, resolution(host.plan))
    skipped = deep_request(service, release.gate, host.catalog).skip
    assert ("image" in skipped, "tools" in skipped) == ("image" not in can, "tools" not in can)
    assert ("thinking-on" in skipped) == ("thinking" not in can)
    if "thinking-only" in can:
        assert "thinks before every answer" in skipped["thinking-off"]
        assert (service.settings.smoke.thinking, service.settings.smoke.max_tokens) == (
            True,
            THINKING_TOKENS,
        )


def test_the_catalog_is_read_first_and_the_hub_gets_no_request() -> None:
    with hub.on_the_hub() as asked:
        heretic = hub.chat(hub.planned({"model": "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"}))
        small = hub.planned({"model": "nvidia/Qwen3.6-35B-A3B-NVFP4"}, "rtx50", gpu="rtx5090")
        large = hub.planned({"model": "nvidia/Qwen3.6-35B-A3B-NVFP4"}, "rtx50", gpu="rtx-pro-6000")
    assert asked == []
    assert heretic.recipe.name == "qwen36-35b-a3b-heretic-dflash"
    assert hub.chat(small).recipe.name == "qwen36-35b-a3b-nvfp4-rtx5090"
    assert hub.chat(large).recipe.name == "qwen36-35b-a3b-nvfp4-rtx-pro-6000"


def test_a_users_own_catalog_is_read(tmp_path: Path) -> None:
    for kind, entry in cases.data["own_catalog"].items():
        (tmp_path / f"{kind}.yaml").write_text(json.dumps(entry))  # JSON is YAML
    with hub.on_the_hub() as asked:
        assert hub.chat(hub.planned(catalog_directories=[str(tmp_path)])).recipe.name == "mine"
    assert asked == []


@cases("group", "data", "length", "share", "vram")
def test_sizes_depend_on_the_gpu(
    group: str, data: dict[str, Any], length: object, share: float, vram: float | None
) -> None:
    with hub.on_the_hub(hub.repository()):
        fleet = hub.planned({}, group, **data)
    result = hub.chat(fleet)
    assert dict(result.arguments)["max_model_len"] == length
    assert dict(result.arguments)["gpu_memory_utilization"] == share
    assert result.recipe.needs.vram_gib == vram
    assert result.recipe.needs.memory_gib == (110 if group == "sparks" else 14)  # 16 GB: 15.5 GiB
    assert not errors(fleet.hosts["spark-1"].violations)


@cases("group", "data", "config", "arguments")
def test_sglang_serves_a_text_model_given_only_by_name(
    group: str, data: dict[str, Any], config: dict[str, Any], arguments: dict[str, Any] | None
) -> None:
    with hub.on_the_hub(hub.repository(config={**hub.CONFIG, **config})):
        fleet = hub.planned({"engine": "sglang"}, group, **data)
    assert not any(errors(host.violations) for host in fleet.hosts.values())
    assert (None if fleet.problems else dict(hub.chat(fleet).arguments)) == arguments


@cases("config", "given", "key", "message")
def test_a_missing_fact_is_named_with_its_setting(
    config: dict[str, Any] | None, given: dict[str, Any], key: str, message: str
) -> None:
    if config is not None:
        whole = {**hub.CONFIG, **config}
        given = {**given, "config": {key: whole[key] for key in whole if whole[key] is not None}}
    with hub.on_the_hub(hub.repository(**given)):
        (problem,) = hub.planned().problems
    assert problem.subject.place == f"group_data/sparks.py: services.chat.{key}"
    assert message in problem.observed
    assert problem.reason
    assert problem.remedy


@cases("task", "changes", "kinds", "runner")
def test_the_hubs_task_decides_the_kind_of_requests(
    task: str, changes: dict[str, Any], kinds: list[str], runner: str | None
) -> None:
    with hub.on_the_hub(hub.repository(config={**hub.CONFIG, **changes}, task=task)):
        fleet = hub.planned()
    (host,), service = fleet.hosts.values(), hub.chat(fleet)
    assert dict(service.arguments).get("runner") == runner
    gate = render_service(host.plan, service, resolution(host.plan)).gate
    assert [*gate.routes] == kinds
    skipped = deep_request(service, gate, host.catalog).skip
    assert ("chat" in skipped, "stream" in skipped) == ("chat" not in kinds, "chat" not in kinds)


def test_an_unknown_gpu_is_reported_with_the_choices() -> None:
    with hub.on_the_hub(hub.repository()) as asked:
        (problem,) = hub.planned(group="boxes").problems
    assert "this host's GPU" in problem.observed
    assert all(name in problem.remedy for name in GPUS)
    assert asked == []  # the hub gets no request before the answer


def test_the_settings_accept_every_gpu_of_the_catalog() -> None:
    for name in GPUS:
        assert HostSettings.model_validate({"services": {}, "gpu": name}).gpu == name


@cases("service")
def test_a_service_has_a_recipe_or_a_model_and_not_both(service: dict[str, Any]) -> None:
    (problem,) = hub.planned(service).problems
    assert "services.chat" in problem.subject.place
    assert "'model'" in problem.observed


def test_an_unknown_architecture_is_named_with_a_suitable_tag() -> None:
    config = {**hub.CONFIG, "architectures": ["Qwen3_5ForCausalLM"]}
    with hub.on_the_hub(hub.repository(config=config)):
        fleet = hub.planned({"image_tag": "v0.24.0"})
    findings = {item.id: item for item in fleet.hosts["spark-1"].violations}
    result = findings["model-architecture"]
    assert "vLLM 0.24.0 has no implementation of Qwen3_5ForCausalLM" in result.observed
    assert "v0.28.0" in result.remedy
    with hub.on_the_hub(hub.repository(config=config)):
        newest = hub.planned()
    assert "model-architecture" not in {item.id for item in newest.hosts["spark-1"].violations}


def _lock(tmp_path: Path, **given: Any) -> Path:
    path = tmp_path / "fleet.lock"
    with hub.on_the_hub(hub.repository(**given)):
        (host,) = hub.planned(lock_file=str(path)).or_raise().values()
    result = resolution(host.plan)
    result.models.update(host.resolved_models)
    path.write_text(render_lock(from_resolution([host.plan.references], result, None)))
    return path


def test_a_locked_fleet_has_the_same_plan_without_a_request(tmp_path: Path) -> None:
    path = _lock(tmp_path)
    with hub.on_the_hub() as asked:
        locked = hub.planned(lock_file=str(path))
    with hub.on_the_hub(hub.repository()):
        fresh = hub.planned(lock_file=str(tmp_path / "none"))
    assert asked == []
    assert hub.chat(locked) == hub.chat(fresh)
    (model,) = pinned(locked.or_raise()).models.values()
    assert model.commit == hub.COMMIT


def test_a_pin_without_the_files_facts_is_incomplete(tmp_path: Path) -> None:
    """A model that a recipe served before keeps its commit."""
    path = _lock(tmp_path)
    lock = read_lock(path)
    assert lock
    bare = {key: replace(item, facts=None) for key, item in lock.models.items()}
    path.write_text(render_lock(Lock(images=lock.images, models=bare)))
    with hub.on_the_hub(hub.repository()) as asked:
        hosts = hub.planned(lock_file=str(path)).or_raise()
    assert asked == [(hub.REPOSITORY, hub.COMMIT)]
    with pytest.raises(Exception, match="is not locked"):
        pinned(hosts)


def test_weights_stored_twice_count_once() -> None:
    files = {**hub.FILES, "consolidated.safetensors": 9_400_000_000}
    with hub.on_the_hub(hub.repository(files=files)):
        texts = {fact.name: fact.value for fact in hub.chat(hub.planned()).derived}
    assert texts["weights"] == "8.8 GiB"


@pytest.mark.parametrize("version", ["0.28.0", "0.32.0"])
def test_every_parser_of_a_family_exists_in_vllm(version: str) -> None:
    expected = table(version).names
    kinds = {"tools": "tool_call_parser", "reasoning": "reasoning_parser"}
    named = {
        (family, parser)
        for family, item in families().items()
        for kind, marks in item.items()
        for parser in marks.values()
        if parser not in expected[kinds[kind]]
    }
    assert named == set()


RECIPE = Path(__file__).with_name("qwen3-8b.yaml").read_text()


@pytest.fixture
def registry(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry of vLLM's recipes: the model's recipe, and other recipes that name the model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "caches"))
    folder = here / "registry"
    (folder / "models/Qwen").mkdir(parents=True)
    (folder / "models/Qwen/Qwen3-8B.yaml").write_text(RECIPE)
    (folder / "models/Another.yaml").write_text(
        "model: {model_id: example/Another}\nvariants: {default: {}}\n"
        f"guide: not to be confused with {hub.REPOSITORY}\n"
    )
    (folder / "models/Broken.yaml").write_text(f"model: [{hub.REPOSITORY}\n")
    return git_registry(folder)


def rewrite(registry: Path, text: str) -> None:
    """Commit another text of the model's recipe."""
    (registry / "models/Qwen/Qwen3-8B.yaml").write_text(text)
    git(registry, "commit", "--quiet", "-am", "second")


def served(registry: Path, service: dict[str, Any] | None = None, **data: Any) -> Fleet:
    with hub.on_the_hub(hub.repository()):
        return hub.planned(service, registries={"vllm": str(registry)}, **data)


def test_vllms_recipe_takes_precedence_over_the_models_own_files(registry: Path) -> None:
    fleet = served(registry)
    assert not errors(fleet.hosts["spark-1"].violations)
    service, source = hub.chat(fleet), f"{registry}@{git(registry, 'rev-parse', 'HEAD')}"
    where = f"{source}:models/Qwen/Qwen3-8B.yaml"
    result = dict(service.arguments)
    # Settings of vLLM's authors, with the block size for a Spark.
    assert result["tool_call_parser"] == "qwen3_xml"
    assert result["reasoning_parser"] == "deepseek_r1"
    assert (result["kv_cache_dtype"], result["block_size"]) == ("fp8", 32)
    for name in ("tool_call_parser", "kv_cache_dtype"):
        assert service.origins[f"argument.{name}"] == where
    assert dict(service.environment)["VLLM_USE_DEEP_GEMM"] == "0"
    # The share of memory does not come from the recipe of vLLM's authors.
    assert result["gpu_memory_utilization"] == 0.8
    assert result["max_num_seqs"] == 16
    # An optional setting was not requested.
    assert "speculative_config" not in result
    assert ("vLLM's recipe", where) in {(fact.name, fact.origin) for fact in service.derived}


def test_the_services_own_settings_override_vllms_recipe(registry: Path) -> None:
    result = dict(hub.chat(served(registry, {"arguments": {"tool_call_parser": None}})).arguments)
    assert not {"tool_call_parser", "enable_auto_tool_choice"} & set(result)
    assert result["reasoning_parser"] == "deepseek_r1"


def test_a_repository_without_a_vllm_recipe_is_read_by_its_files(registry: Path) -> None:
    other = hub.repository(name="Qwen/Qwen3-8B-AWQ")
    with hub.on_the_hub(other):
        fleet = hub.planned({"model": "Qwen/Qwen3-8B-AWQ"}, registries={"vllm": str(registry)})
    assert dict(hub.chat(fleet).arguments)["tool_call_parser"] == "hermes"


def test_the_lock_has_vllms_recipe_and_no_registry_gets_a_second_request(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = served(registry, lock_file=str(tmp_path / "fleet.lock"))
    references = [host.plan.references for host in fleet.or_raise().values()]
    monkeypatch.setattr("sparkwright.resolve.lock.ask_registry", _image)
    lock = from_resolution(references, ask(fleet.hosts), Lock(images={}, models={}))
    (tmp_path / "fleet.lock").write_text(render_lock(lock))
    assert read_lock(tmp_path / "fleet.lock") == lock
    assert "Long words" not in render_lock(lock)
    before = hub.chat(fleet).arguments
    rewrite(registry, RECIPE.replace("fp8, --gpu", "auto, --gpu"))
    with hub.on_the_hub():
        again = hub.planned(
            registries={"vllm": str(registry)}, lock_file=str(tmp_path / "fleet.lock")
        )
    assert hub.chat(again).arguments == before


def test_an_image_older_than_the_required_vllm_is_reported(registry: Path) -> None:
    text = RECIPE.replace('"0.9.0"', '"9.1.0"')
    rewrite(registry, text)
    (problem,) = served(registry).problems
    assert "needs vLLM 9.1.0" in problem.observed
    assert (problem.subject.key or "").endswith("services.chat.image_tag")
    assert not served(registry, {"image_tag": "v0.32.0"}).problems


@cases("image", "taken")
def test_settings_of_another_image_are_ignored(registry: Path, image: str, taken: bool) -> None:
    text = RECIPE.replace("precision: fp8", f"precision: fp8\n    docker_image: {image}")
    rewrite(registry, text)
    service = hub.chat(served(registry))
    assert service.image.name == "registry-1.docker.io/vllm/vllm-openai:v0.32.0"
    assert (dict(service.arguments)["tool_call_parser"] == "qwen3_xml") == taken
    (value,) = (fact.value for fact in service.derived if fact.name == "vLLM's recipe")
    assert value.startswith("not taken") != taken
    if not taken:
        assert image in value


def test_speculation_by_a_models_own_heads_is_enabled(registry: Path) -> None:
    text = RECIPE.replace('"ngram"', '"mtp"').replace("opt_in_features: [spec_decoding]", "")
    rewrite(registry, text)
    fleet = served(registry)
    assert not errors(fleet.hosts["spark-1"].violations)
    result = dict(hub.chat(fleet).arguments)
    assert result["speculative_config"] == {"method": "mtp", "num_speculative_tokens": 3}


def test_an_unreachable_registry_is_an_error(here: Path) -> None:
    (problem,) = served(here / "none").problems
    assert str(here / "none") in str(problem)


def test_vllms_recipe_runs_no_code_and_reads_no_files(registry: Path) -> None:
    """An attacker who writes to the registry tries to make the engine load code or read files."""
    attacks: list[str] = cases.data["attacks"]
    option = "--enable-prefix-caching,"
    rewrite(registry, RECIPE.replace(option, option + "".join(f" '{item}'," for item in attacks)))
    service = hub.chat(served(registry))
    left_out = " ".join(fact.value for fact in service.derived if fact.name == "not taken")
    for attack in attacks:
        name = re.split("[.=]", attack.lstrip("-"))[0].replace("-", "_")
        assert name not in dict(service.arguments)
        assert name in left_out.replace("-", "_")
    assert "HF_TOKEN" not in dict(service.environment)
    assert dict(service.arguments)["tool_call_parser"] == "qwen3_xml"


def _image(*_: object, **__: object) -> Any:
    from sparkwright.resolve.registry import ResolvedImage

    return ResolvedImage("sha256:" + "a" * 64, {})
