"""Every rule: a settings file that violates it, and the unchanged recipe, which is valid."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.catalog.entries import KvOffload
from sparkwright.catalog.gpus import GPUS, VRAM, largest_for
from sparkwright.checks.configuration import RULES, check_host, rule_ids, unknown_silences
from sparkwright.checks.configuration.facts import Hardware, assumed_hardware
from sparkwright.checks.configuration.issues import all_issues
from sparkwright.checks.configuration.memory_budget import budgets
from sparkwright.engines.derivation import Gpu
from sparkwright.engines.vllm.arguments import PARSER
from sparkwright.findings.finding import Severity, errors
from sparkwright.findings.user_error import UserError
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.service import container_command
from sparkwright.resolve.hub import PinnedFile, lora_of
from sparkwright.resolve.lock import Resolution
from sparkwright.site.desired import rendered
from sparkwright.site.fleet import PlannedHost
from sparkwright.site.resolution import with_geometry
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import catalog, origin, plan, resolution

cases = Tables(__file__)

HERETIC = "qwen36-35b-a3b-heretic-dflash"
QWEN27 = "qwen36-27b-dflash-fp8"
MTP = "qwen36-27b-xs-mtp-nvfp4kv"
TURBO = "qwen36-27b-turboquant-k8v4"
GEMMA = "gemma4-26b-a4b-dflash-production"
OMNI2 = "qwen36-35b-a3b-heretic-omni-v2"
QWEN_RTX = "qwen36-35b-a3b-nvfp4-rtx5090"
AEON_RTX = "qwen36-35b-a3b-heretic-dflash-rtx5090"
FIXED = "2026-06-11-pr41703"
OLD = "2026-06-04-pr44389"
DRAFT = {"method": "dflash", "model": "/drafter", "num_speculative_tokens": 10}


def _arguments(**arguments: Any) -> dict[str, Any]:
    return {"arguments": arguments}


#: rule -> recipe, settings over it, and the key below the service that the rule names.
BREAKS: dict[str, dict[str, Any]] = safe_load(Path(__file__).with_name("mistakes.yaml").read_text())
#: Rules that need more than one service's settings; each has a separate test below.
ELSEWHERE = set(cases.data["ELSEWHERE"])


def _broken(recipe: str, settings: dict[str, Any], **data: Any) -> dict[str, Any]:
    host = plan({"s": {"recipe": recipe, **settings}}, **data)
    return {item.id: item for item in check_host(host, catalog(), assumed_hardware(host))}


@pytest.mark.parametrize("rule", BREAKS)
def test_each_rule_reports_its_mistake(rule: str) -> None:
    recipe, settings, key = BREAKS[rule].values()
    result = _broken(recipe, settings)
    assert rule in result, result
    item = result[rule]
    assert item.subject.key == f"services.s.{key}"
    assert item.observed
    assert item.reason
    assert item.source
    assert item.remedy
    assert rule not in _broken(recipe, {})


def test_a_name_of_quantization_that_vllm_replaces_passes_only_for_modelopt_weights() -> None:
    settings = {"arguments": {"quantization": "fp4"}}
    assert not _broken("qwen36-27b-mtp-nvfp4kv", settings)
    assert "quantization-format" in _broken(HERETIC, settings)


@cases("recipe", "gpu", "needed")
def test_a_recipe_for_another_gpu_is_refused_with_recipes_for_the_hosts_gpu(
    recipe: str, gpu: str, needed: str
) -> None:
    own = Gpu(GPUS[gpu], VRAM.get(gpu), "group_data/x.py: gpu")
    host = replace(plan({"s": {"recipe": recipe}}), gpu=own)
    findings = {item.id: item for item in check_host(host, catalog(), assumed_hardware(host))}
    assert ("recipe-gpu" in findings) == bool(needed)
    if needed:
        assert needed in findings["recipe-gpu"].observed
        first = findings["recipe-gpu"].remedy.removeprefix("recipe: ").split(" or ")[0]
        right = replace(plan({"s": {"recipe": first}}), gpu=own)
        assert not errors(check_host(right, catalog(), assumed_hardware(right)))


@cases("changes", "name", "over")
def test_the_memory_of_services_on_one_card_adds_up(
    changes: dict[str, Any], name: str | None, over: bool
) -> None:
    gguf = {"recipe": "qwen35-27b-gguf-rtx-24gb", "gpus": [0]}
    services = {
        "a": {**gguf, "port": 8000},
        "b": {**gguf, "port": 8001, "served_names": ["b"], **changes},
    }
    card = Gpu("12.0", VRAM[name], "group_data/x.py: gpu") if name else None
    host = replace(plan(services), gpu=card)
    findings = {item.id: item for item in check_host(host, catalog(), assumed_hardware(host))}
    assert ("card-memory" in findings) == over
    if over:
        assert findings["card-memory"].observed.startswith("card 0: 41.7 GiB of 31.8 GiB: a 20.9")


@cases("argument", "path", "settings", "fault")
def test_a_file_that_an_argument_names_is_in_the_container(
    argument: str, path: str, settings: dict[str, Any], fault: str
) -> None:
    entries = catalog()
    images = {name: image.model_copy(update={"known_files": ("/own/*",)})
              for name, image in entries.images.items()}  # fmt: skip
    host = plan({"s": {"recipe": HERETIC, "arguments": {argument: path}, **settings}})
    files = dict.fromkeys(("model.safetensors", "chat.jinja", "p.py"), PinnedFile(1, "d" * 64))
    models = {key: replace(model, files=files) for key, model in resolution(host).models.items()}
    for pinned in ({}, models):  # without and with the lock's files
        host, hardware = replace(host, resolved=pinned), assumed_hardware(host)
        findings = check_host(host, replace(entries, images=images), hardware)
        faults = [finding.observed for finding in findings if finding.id == "absent-file"]
        assert len(faults) == bool(fault and (pinned or "/models" not in path))
        assert all(fault in observed and repr(path) in observed for observed in faults)


def test_every_rule_has_a_test() -> None:
    assert set(rule_ids(catalog())) == set(BREAKS) | ELSEWHERE
    assert not set(BREAKS) & ELSEWHERE


def test_ids_of_rules_are_unique() -> None:
    shared = set(PARSER.judgement("").ids)
    ids = [id_ for id_ in RULES.ids if id_ not in shared] + list(all_issues(catalog()))
    issues = [i for image in catalog().images.values() for i in image.issues]
    assert len(ids) == len(set(ids))
    assert len(issues) == len({issue.id for issue in issues})


#: The card claims that it runs on RTX 50; the image is only for arm64.
CLAIMED = {AEON_RTX, "qwen36-35b-a3b-heretic-dflash-rtx-pro-6000"}


@pytest.mark.parametrize("recipe", sorted(catalog().recipes))
def test_an_unchanged_recipe_breaks_no_rule(recipe: str) -> None:
    if ranks := catalog().recipes[recipe].ranks:
        hosts = [f"spark-{number + 1}" for number in range(ranks.world)]
        clusters = {"those": {"hosts": hosts, "fabric": "cx7"}}
        # Nobody has run this recipe with this tool, and a warning reports this.
        assert set(_broken(recipe, {"cluster": "those"}, clusters=clusters)) == {"model-works"}
        return
    unproven = {"model-works"} if catalog().recipes[recipe].status == "unproven" else set()
    claimed = {"image-architecture"} if recipe in CLAIMED else set()
    assert set(_broken(recipe, {})) == claimed | unproven


def test_an_image_for_arm64_is_refused_on_an_rtx_50_with_alternatives() -> None:
    result = _broken(AEON_RTX, {})["image-architecture"]
    assert result.severity is Severity.ERROR
    assert "aeon-vllm-ultimate:2026-08-17-v0.27.1-slim is only for arm64" in result.observed
    assert QWEN_RTX in result.remedy
    assert "rtx-pro-6000" not in result.remedy  # this recipe needs a larger card
    assert "heretic" not in result.remedy
    assert "DFlash#9" in result.source


def test_an_arm64_machine_with_an_rtx_50_is_accepted() -> None:
    host = plan({"s": {"recipe": AEON_RTX}})
    arm = Hardware("12.0", 64, 31.8, "arm64")
    assert check_host(host, catalog(), arm) == []
    assert {
        item.id for item in check_host(host, catalog(), replace(arm, architecture="amd64"))
    } == {"image-architecture"}


def test_the_age_of_a_tag_depends_only_on_its_date() -> None:
    whole = catalog()
    image = whole.images["aeon-vllm-ultimate"]
    newest = image.tags[image.newest_tag]
    nightly = newest.model_copy(update={"date": newest.date and newest.date.replace(year=2027)})
    own = image.model_copy(update={"tags": {**image.tags, FIXED: nightly}})
    changed = replace(whole, images={**whole.images, image.name: own})
    host = plan({"s": {"recipe": HERETIC, "image_tag": FIXED, "arguments": {"max_num_seqs": 31}}})
    ids = [{item.id for item in check_host(host, each, assumed_hardware(host))}
           for each in (whole, changed)]  # fmt: skip
    assert ids == [{"old-tag"}, set()]


@pytest.mark.parametrize("gpu", sorted(VRAM))
def test_every_card_has_a_recipe_that_runs_and_trusts_no_code(gpu: str) -> None:
    recipe = largest_for(gpu, catalog())
    assert recipe is not None
    assert recipe.image == ("llamacpp" if VRAM[gpu] < 15 else "vllm-openai")
    assert "trust_remote_code" not in recipe.arguments
    assert recipe.image == "llamacpp" or recipe.source.startswith("vLLM's recipes")


def test_a_silenced_rule_stops_no_run_and_stays_visible() -> None:
    settings = {**_arguments(mamba_block_size=256, quantization="modelopt")}
    settings["silenced"] = {"quantization-format": "tried on spark-1 on Monday"}
    host = plan({"s": {"recipe": HERETIC, **settings}})
    result = check_host(host, catalog(), assumed_hardware(host))
    assert errors(result) == []
    (entry,) = [item for item in result if item.id == "quantization-format"]
    assert entry.silenced == "tried on spark-1 on Monday"


def test_silencing_an_unknown_rule_is_an_error() -> None:
    host = plan({"s": {"recipe": HERETIC, "silenced": {"quantisation-format": "because of that"}}})
    (problem,) = unknown_silences(host, catalog(), origin("services"))
    assert problem.subject.place.endswith("services.s.silenced.quantisation-format")
    assert "quantization-format" in problem.remedy


def test_services_and_sidecars_share_a_sparks_memory() -> None:
    item = {"recipe": HERETIC, "arguments": {"gpu_memory_utilization": 0.5}}
    two = {"a": {**item}, "b": {**item, "port": 8001, "served_names": ["other"]}}
    host = plan(two, sidecars={"qwen3-asr": 6, "qwen3-tts": 8})
    (result,) = [
        b for b in check_host(host, catalog(), assumed_hardware(host)) if b.id == "unified-memory"
    ]
    # 2 x 0.5 x 119.7 + 6 + 8 + 8 for the system
    assert "142 GiB of 120 GiB" in result.observed
    assert "qwen3-tts 8" in result.observed
    alone = plan({"a": {**item}}, sidecars={"qwen3-asr": 6, "qwen3-tts": 8})
    assert check_host(alone, catalog(), assumed_hardware(alone)) == []


def test_a_drafter_of_another_model_is_refused() -> None:
    host = plan({"s": {"recipe": HERETIC}})
    (service,) = host.services
    assert service.drafter is not None
    other = replace(service.drafter, name="qwen36-27b-dflash")
    moved = replace(host, services=(replace(service, drafter=other),))
    rules = {item.id for item in check_host(moved, catalog(), assumed_hardware(moved))}
    assert rules == {"drafter-family"}


@pytest.mark.parametrize(("status", "severity"), [("fails", "error"), ("expected", "warning")])
def test_a_model_that_does_not_work_is_refused(status: str, severity: str) -> None:
    whole = catalog()
    body = whole.models["qwen36-35b-a3b-heretic-nvfp4"]
    bad = body.model_copy(update={"status": status, "reason": "the card's author ran this recipe"})
    changed = replace(whole, models={**whole.models, body.name: bad})
    host = plan({"s": {"recipe": HERETIC}})
    (result,) = check_host(host, changed, assumed_hardware(host))
    assert (result.id, result.severity, result.reason) == (
        "model-works",
        Severity(severity),
        "the card's author ran this recipe",
    )


def test_an_image_only_for_the_spark_is_refused_on_a_card() -> None:
    host = plan({"s": {"recipe": OMNI2}})
    card = Hardware("12.0", 64, 95.6, "amd64")
    assert "omni-gb10-only" in {item.id for item in check_host(host, catalog(), card)}


def test_an_nvfp4_kv_cache_is_refused_on_stock_vllm_and_consumer_blackwell() -> None:
    service = {"recipe": "gemma4-26b-a4b-stock", "image_tag": "v0.24.0",
               "arguments": {"kv_cache_dtype": "nvfp4"}}  # fmt: skip
    host = plan({"s": service})
    result = {
        cap: {item.id for item in check_host(host, catalog(), Hardware(cap, 120, None, "arm64"))}
        for cap in ("12.1", "10.0")
    }
    assert "stock-nvfp4-kv" in result["12.1"]
    assert "stock-nvfp4-kv" not in result["10.0"]


@cases("gpus", "arguments", "there", "expected")
def test_gpus_of_known_hosts_are_counted(
    gpus: list[int] | None, arguments: dict[str, Any], there: int | None, expected: bool
) -> None:
    service = {"recipe": QWEN_RTX, "arguments": arguments, **({"gpus": gpus} if gpus else {})}
    host = plan({"s": service})
    hardware = Hardware("12.0", 64, 31.8, "amd64", gpus=there)
    assert ("gpu-count" in {item.id for item in check_host(host, catalog(), hardware)}) is expected


@pytest.mark.parametrize("share", [0.75, 0.85, "0.85", 0.88])
@pytest.mark.parametrize("recipe", [QWEN27, MTP, TURBO, GEMMA])
def test_the_cards_own_shares_fit_a_spark(recipe: str, share: float | str) -> None:
    """The cards use 0.75 to 0.85 for the dominant workload, and 0.88 at most. shm_size is a limit
    and reserves no memory.
    """
    assert _broken(recipe, _arguments(gpu_memory_utilization=share)) == {}


def test_unwritten_arguments_are_judged_by_the_versions_default() -> None:
    absent = {"enable_prefix_caching": None}
    result = _broken(GEMMA, {"image_tag": OLD, "arguments": absent})["prefix-caching-corrupts"]
    assert "enable_prefix_caching is not set, and its default is True" in result.observed
    # The tag's version turns prefix caching off for hybrid models by default.
    hybrid = _broken(HERETIC, {"image_tag": OLD, "arguments": {**absent, "max_num_seqs": 8}})
    assert "prefix-caching-corrupts" not in hybrid


def test_dflash_on_stock_vllm_is_refused() -> None:
    result = _broken(
        "gemma4-26b-a4b-stock",
        _arguments(speculative_config={**DRAFT, "attention_backend": "flash_attn"}),
    )
    assert "stock-dflash" in result


def test_the_context_is_compared_with_the_memory_for_the_kv_cache() -> None:
    result = _broken(AEON_RTX, _arguments(max_model_len=262144, gpu_memory_utilization=0.88))
    # 20 KiB a token: 10 layers x 2 x 2 heads x 256 x 2 bytes; 31 GiB x 0.88 - 20.5 - 0.84 - 2 left
    assert "takes 5.0 GiB of KV cache, and 3.9 GiB are left" in result["kv-cache"].observed
    assert result["kv-cache"].remedy.startswith("max_model_len: 205824")


def test_a_recipe_on_an_unsuitable_tag_is_reported_with_its_location() -> None:
    with pytest.raises(UserError) as raised:
        plan({"s": {"recipe": "qwen36-35b-a3b-heretic-omni-v2", "image_tag": "v1.2"}})
    (problem,) = raised.value.findings
    assert problem.subject.place == "group_data/sparks.py: services.s.image_tag"
    assert "does not run on tag" in problem.observed
    # The user requested v1.2, so the remedy names its recipe.
    assert problem.remedy == "recipe: qwen36-35b-a3b-heretic-omni-v1.2, which runs on this tag"


ADAPTER = {"name": "my-style", "model": "org/my-style"}
CONFIG = {"peft_type": "LORA", "r": 16, "base_model_name_or_path": "AEON-7/Qwen3.6-35B-A3B-heretic"}
LAYER = "base_model.model.model.layers.3"
SHAPES = {
    f"{LAYER}.self_attn.q_proj.lora_A.weight": [16, 2048],
    f"{LAYER}.mlp.down_proj.lora_B.weight": [2048, 16],
    f"{LAYER}.mlp.experts.lora_A.weight": [4096, 2048],
}


def _resolved(service: dict[str, Any], **files: Any) -> tuple[HostPlan, Resolution]:
    """A host with an adapter of these files, after a hub's answer."""
    host = plan(
        {"s": {"recipe": "qwen36-35b-a3b-heretic-dflash", "adapters": [ADAPTER], **service}}
    )
    answers, stated = resolution(host), {
        "config": json.dumps(CONFIG), "shapes": SHAPES, **files
    }  # fmt: skip
    header = json.dumps({name: {"shape": shape} for name, shape in stated["shapes"].items()})
    weights = len(header).to_bytes(8, "little") + header.encode()
    names = ["adapter_config.json", *["adapter_model.safetensors"] * bool(stated["shapes"])]

    def piece(_: str, start: int, length: int) -> bytes:
        return weights[start : start + length]

    try:
        lora = lora_of(names, lambda _: json.loads(stated["config"]), piece)
    except ValueError:
        lora = None
    body, adapter = host.services[0].body.key, host.services[0].adapters["my-style"].key
    answers.models[body] = replace(answers.models[body], hidden_size=2048)
    answers.models[adapter] = replace(answers.models[adapter], lora=lora)
    planned = with_geometry({"spark-1": PlannedHost(host, catalog())}, answers)["spark-1"]
    return planned.plan, answers


def _faults(host: HostPlan) -> list[str]:
    findings = check_host(host, catalog(), assumed_hardware(host))
    return [str(item.observed) for item in findings if item.id == "adapters"]


def test_an_adapter_that_fits_is_mounted_named_and_counted() -> None:
    host, answers = _resolved({})
    assert _faults(host) == []
    assert "--max-lora-rank 16" in " ".join(container_command(host.services[0]).arguments)
    service = rendered(host, answers)[0]
    assert '--lora-modules"\n      - "my-style=/adapters/my-style"' in service.compose
    assert 'target: "/adapters/my-style", read_only: true' in service.compose
    assert service.gate.served_names[-1:] == service.gate.adapters == ("my-style",)
    assert service.models["org/my-style"]
    alone = plan({"s": {"recipe": "qwen36-35b-a3b-heretic-dflash"}})
    with_adapter, without = (
        budgets(each, catalog(), assumed_hardware(each))["s"].weights or 0 for each in (host, alone)
    )
    assert with_adapter == without + 22


@cases("files", "service", "fault")
def test_an_adapter_that_does_not_fit_is_refused(
    files: dict[str, Any], service: dict[str, Any], fault: str
) -> None:
    (observed,) = _faults(_resolved(service, **files)[0])
    assert fault in observed


@pytest.mark.parametrize("key", ["adapters", "kv_offload"])
@pytest.mark.parametrize("engine", ["sglang", "llamacpp"])
def test_an_engine_without_adapters_is_reported(engine: str, key: str) -> None:
    images = catalog().images
    recipe = next(
        name
        for name, item in catalog().recipes.items()
        if images[item.image].engine == engine and item.ranks is None
    )
    value: Any = {"adapters": [ADAPTER], "kv_offload": {"gib": 8}}[key]
    host = plan({"s": {"recipe": recipe, key: value}})
    findings = errors(check_host(host, catalog(), assumed_hardware(host)))
    (finding,) = [item for item in findings if item.id in ("adapters", "kv-offload")]
    assert str(finding.subject.key).startswith(f"services.s.{key}")


def test_an_adapters_name_must_differ_from_served_names() -> None:
    recipe = {"recipe": "qwen36-35b-a3b-heretic-dflash", "served_names": ["my-style"]}
    with pytest.raises(UserError, match="my-style"):
        plan({"s": {**recipe, "adapters": [ADAPTER]}})


@cases("service", "message")
def test_impossible_settings_are_refused_at_their_key(
    service: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        plan({"s": {"recipe": "qwen36-35b-a3b-heretic-dflash", **service}})


def test_adapters_need_lora() -> None:
    (observed,) = _faults(_resolved({"arguments": {"enable_lora": False}})[0])
    assert "enable_lora is False" in observed


def test_a_service_can_remove_the_recipes_kv_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    entries, name = catalog(), "qwen36-35b-a3b-heretic-dflash"
    recipe = entries.recipes[name].model_copy(update={"kv_offload": KvOffload(gib=8)})
    monkeypatch.setitem(entries.recipes, name, recipe)
    for service, offload in (({}, recipe.kv_offload), ({"kv_offload": None}, None)):
        assert plan({"s": {"recipe": name, **service}}).services[0].kv_offload == offload
