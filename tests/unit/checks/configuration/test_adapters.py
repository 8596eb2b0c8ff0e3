"""Adapters are judged in the plan, by what their own files say."""

import json
from dataclasses import replace
from typing import Any

import pytest

from sparkwright.catalog.entries import KvOffload
from sparkwright.checks.configuration import check_host
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.checks.configuration.memory_budget import budgets
from sparkwright.findings.finding import errors
from sparkwright.findings.user_error import UserError
from sparkwright.plan.plan import HostPlan
from sparkwright.plan.service import container_command
from sparkwright.resolve.hub import lora_of
from sparkwright.resolve.lock import Resolution
from sparkwright.site.desired import rendered
from sparkwright.site.fleet import PlannedHost
from sparkwright.site.resolution import with_geometry
from tests.tables import Tables
from tests.unit.builders import catalog, plan, resolution

cases = Tables(__file__)

ADAPTER = {"name": "my-style", "model": "org/my-style"}
CONFIG = {"peft_type": "LORA", "r": 16, "base_model_name_or_path": "AEON-7/Qwen3.6-35B-A3B-heretic"}
LAYER = "base_model.model.model.layers.3"
SHAPES = {
    f"{LAYER}.self_attn.q_proj.lora_A.weight": [16, 2048],
    f"{LAYER}.mlp.down_proj.lora_B.weight": [2048, 16],
    f"{LAYER}.mlp.experts.lora_A.weight": [4096, 2048],
}


def _resolved(service: dict[str, Any], **files: Any) -> tuple[HostPlan, Resolution]:
    """A host with an adapter of these files, once a hub has said what they are."""
    host = plan(
        {"s": {"recipe": "qwen36-35b-a3b-heretic-dflash", "adapters": [ADAPTER], **service}}
    )
    answers, known = resolution(host), {
        "config": json.dumps(CONFIG), "shapes": SHAPES, **files
    }  # fmt: skip
    header = json.dumps({name: {"shape": shape} for name, shape in known["shapes"].items()})
    weights = len(header).to_bytes(8, "little") + header.encode()
    names = ["adapter_config.json", *["adapter_model.safetensors"] * bool(known["shapes"])]

    def piece(_: str, start: int, length: int) -> bytes:
        return weights[start : start + length]

    try:
        lora = lora_of(names, lambda _: json.loads(known["config"]), piece)
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
def test_an_engine_that_lacks_it_says_so(engine: str, key: str) -> None:
    images = catalog().images
    recipe = next(
        name for name, item in catalog().recipes.items() if images[item.image].engine == engine
    )
    value: Any = {"adapters": [ADAPTER], "kv_offload": {"gib": 8}}[key]
    host = plan({"s": {"recipe": recipe, key: value}})
    findings = errors(check_host(host, catalog(), assumed_hardware(host)))
    (finding,) = [item for item in findings if item.id in ("adapters", "kv-offload")]
    assert str(finding.subject.key).startswith(f"services.s.{key}")


def test_an_adapters_name_is_a_name_of_its_service_alone() -> None:
    recipe = {"recipe": "qwen36-35b-a3b-heretic-dflash", "served_names": ["my-style"]}
    with pytest.raises(UserError, match="my-style"):
        plan({"s": {**recipe, "adapters": [ADAPTER]}})


@pytest.mark.parametrize(
    ("service", "words"),
    [
        *(({"kv_offload": {"gib": 8, "disk": path}}, "no disk")
          for path in ("/proc", "/etc", "/dev/shm/x", "/tmp/x", "/run/x")),
        ({"adapters": [ADAPTER, {**ADAPTER, "model": "org/other"}]}, "a name of its own"),
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused_where_it_is_written(
    service: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        plan({"s": {"recipe": "qwen36-35b-a3b-heretic-dflash", **service}})


def test_adapters_need_lora() -> None:
    (observed,) = _faults(_resolved({"arguments": {"enable_lora": False}})[0])
    assert "enable_lora is False" in observed


def test_a_service_takes_the_recipes_kv_cache_away(monkeypatch: pytest.MonkeyPatch) -> None:
    known, name = catalog(), "qwen36-35b-a3b-heretic-dflash"
    recipe = known.recipes[name].model_copy(update={"kv_offload": KvOffload(gib=8)})
    monkeypatch.setitem(known.recipes, name, recipe)
    for service, offload in (({}, recipe.kv_offload), ({"kv_offload": None}, None)):
        assert plan({"s": {"recipe": name, **service}}).services[0].kv_offload == offload
