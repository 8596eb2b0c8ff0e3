"""Recipes of three formats, key by key, as entries of the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkwright.config.inventory import HostInput
from sparkwright.extras.imports.files import write
from sparkwright.findings.finding import Severity
from sparkwright.site.fleet import plan_fleet
from tests.unit.extras.imports.recipes import (
    FIXTURES,
    REGISTRY,
    minimal,
    of_folder,
    of_text,
    recipe,
    said,
)


def test_every_key_of_version_2_is_carried_over_or_named() -> None:
    result = of_folder(REGISTRY)["everything"]
    made = recipe(result)
    assert made["title"] == "One of every key"
    assert (made["status"], made["served_names"]) == ("unproven", ["tiny-nine", "tiny-nine-fast"])
    assert made["shm_gib"] == 16
    assert made["memlock"] is True
    assert made["environment"] == {
        "VLLM_MARLIN_USE_ATOMIC_ADD": "1", "EMPTY": "", "TIKTOKEN_ENCODINGS_BASE": "/etc/encodings",
        "OMP_NUM_THREADS": "4",
    }  # fmt: skip
    assert made["arguments"] == {
        "tensor_parallel_size": 2,
        "pipeline_parallel_size": 1,
        "gpu_memory_utilization": 0.88,
        "max_model_len": 131072,
        "cudagraph_capture_sizes": [5, 10, 15],
        "enable_flashinfer_autotune": False,
        "enable_prefix_caching": True,
        "speculative_config": {"method": "mtp", "num_speculative_tokens": 2},
        "hf_overrides": '{"text_config":{"rope":[1,2],"factor":2.0}}',
        "compilation_config": {"mode": 0, "cudagraph_mode": "none"},
        "default_chat_template_kwargs": {"thinking": True},
    }
    model = result.entries["model", "example-tiny-9b-fp8-v1.0"]
    assert (model["repository"], model["revision"]) == ("example/Tiny-9B-FP8", "v1.0")
    assert (model["format"], model["family"], model["capabilities"]) == ("fp8", "tiny-9b", ["mtp"])
    image = result.entries["image", "ghcr.io-example-engine-2026-09-01"]
    assert image["repository"] == "ghcr.io/example/engine"
    assert set(said(result, "left-out")) == {
        *("runtime_version", "runtime_config", "pre_exec", "post_exec", "post_commands", "mods"),
        *("stop_after_post", "builder", "builder_config", "build_args", "benchmark"),
        *("distribution_config", "a_key_of_tomorrow", "defaults.nobody_reads_me"),
        *(f"executor_config.{key}" for key in ("user", "devices", "cap_add", "privileged",
                                               "memory_limit", "entrypoint")),
        *("env.FROM_HOME", "env.RUN_ME", "env.HF_TOKEN"),
        *("arguments.trust_remote_code", "arguments.chat_template"),
        *("arguments.distributed_executor_backend", "command --flag-of-a-fork", "command --seed"),
        *("command --api-key", "command --port"),
    }  # fmt: skip
    assert set(said(result, "changed")) == {"arguments.gpu_memory_utilization"}
    assert said(result, "hardware")["min_nodes"].observed == "2 GPUs (gb10)"
    shown = "\n".join(f"{one.observed}{made['notes']}" for one in result.findings)
    assert "sk-not-for-logs" not in shown
    assert "hf_0123456789" not in shown


def test_a_recipe_without_a_command_is_started_by_its_defaults() -> None:
    made = recipe(of_folder(REGISTRY)["generated"])
    assert made["arguments"] == {
        "tensor_parallel_size": 1, "gpu_memory_utilization": 0.7, "enable_prefix_caching": True
    }  # fmt: skip
    assert (made["image"], made["tag"]) == ("vllm-openai", "v0.24.0")
    assert made["served_names"] == ["small"]


def test_version_1_has_doubled_braces_local_images_and_a_drafter_in_its_json() -> None:
    result = of_folder(REGISTRY)["first"]
    made = recipe(result)
    assert made["image"] == "spark-arena-nightly"
    risks = [one.observed for one in result.findings if one.id == "import-risk"]
    # The library's entry of it says no more of it than an import knows.
    assert "latest moves" in risks
    assert any("nobody says which vLLM it holds" in one for one in risks)
    assert made["drafter"] == {
        "model": "example-first-26b-assistant", "mount": "/models/example-first-26b-assistant"
    }  # fmt: skip
    assert made["arguments"] == {
        "gpu_memory_utilization": 0.7,
        "kv_cache_dtype": "fp8",
        "mamba_ssm_cache_dtype": "float32",
        "speculative_config": {
            "method": "mtp", "model": "/models/example-first-26b-assistant",
            "num_speculative_tokens": 4,
        },
        "compilation_config": '{"cudagraph_mode":"NONE","custom_ops":["all"]}',
    }  # fmt: skip
    assert {"container", "arguments.tensor_parallel_size"} <= set(said(result, "changed"))
    drafter = result.entries["model", "example-first-26b-assistant"]
    body = result.entries["model", "example-first-26b-nvfp4"]
    assert (drafter["role"], drafter["family"]) == ("drafter", body["family"])


def test_of_one_name_in_two_folders_the_second_has_its_folders() -> None:
    result = of_folder(REGISTRY)["pair-first"]
    assert recipe(result)["image"] == "eugr-spark-vllm-b12x-latest"
    assert recipe(result)["arguments"]["tensor_parallel_size"] == 2
    assert "command --gpu-memory-utilization-gb" in said(result, "left-out")


@pytest.mark.parametrize(
    ("file", "key", "word"),
    [
        ("local.yaml", "container", "local name"),
        ("other-engine.yaml", "command", "SGLang"),
        ("gguf.yaml", "model", "GGUF"),
    ],
)
def test_what_is_not_for_vllm_is_refused_by_name(file: str, key: str, word: str) -> None:
    result = of_folder(REGISTRY)[file]
    (refused,) = [one for one in result.findings if one.severity is Severity.ERROR]
    assert refused.subject.key == key
    assert word in refused.observed + refused.reason


def test_another_image_can_be_named() -> None:
    text = (REGISTRY / "local.yaml").read_text()
    made = recipe(of_text(text, image="ghcr.io/example/engine@sha256:" + "a" * 64, vllm="0.24.0"))
    assert made["image"] == f"ghcr.io-example-engine-sha256-{'a' * 12}"


def test_vllms_own_recipes_are_a_recipe_for_each_variant() -> None:
    found = of_folder(FIXTURES / "vllm")
    default, fp8 = recipe(found["example-30b"]), recipe(found["example-30b-fp8"])
    assert default["arguments"] == {
        "enable_auto_tool_choice": True, "tool_call_parser": "qwen3_coder",
        "reasoning_parser": "qwen3", "tensor_parallel_size": 2, "gpu_memory_utilization": 0.8,
    }  # fmt: skip
    assert fp8["arguments"] == {
        "kv_cache_dtype": "fp8", "gpu_memory_utilization": 0.6, "max_num_seqs": 8,
        "enable_auto_tool_choice": True, "tool_call_parser": "qwen3_coder",
        "reasoning_parser": "qwen3",
    }  # fmt: skip
    assert fp8["environment"] == {"VLLM_USE_V2_MODEL_RUNNER": "1", "VLLM_USE_DEEP_GEMM": "0"}
    assert (fp8["image"], fp8["tag"]) == ("vllm-openai", "v0.32.0")
    assert {"dependencies", "features.spec_decoding"} <= set(said(found["example-30b"], "left-out"))
    nvfp4 = found["example-30b-nvfp4"]
    assert recipe(nvfp4)["tag"] == "v0.24.0"
    assert recipe(nvfp4)["arguments"]["tensor_parallel_size"] == 2
    removed = said(nvfp4, "left-out")["env.VLLM_USE_FLASHINFER_MOE_FP4"]
    assert "0.24.0 removed it" in removed.reason
    assert "vLLM-Omni" in found["Pictures.yaml"].findings[-1].observed


def test_variants_and_gpus_are_chosen() -> None:
    text = (FIXTURES / "vllm/Example-30B.yaml").read_text()
    made = recipe(of_text(text, gpu="rtx5090", variants=("fp8",)))
    assert made["needs"] == {"compute_caps": ["12.0"], "memory_gib": 32.0, "vram_gib": 31.0}
    assert made["tag"] == "v0.28.0"
    assert made["arguments"]["max_num_seqs"] == 2
    assert made["arguments"]["tensor_parallel_size"] == 2  # 42 GB in cards of 32
    refused = of_text(text, variants=("elsewhere",))
    assert "mi355x" in refused.findings[-1].observed
    missing = of_text(text, variants=("int2",))
    assert "there is no variant 'int2'" in missing.findings[-1].observed


def test_a_parser_goes_with_its_plugin() -> None:
    result = of_text(
        minimal("vllm serve {model} --reasoning-parser-plugin p.py --reasoning-parser of_plugin")
    )
    assert "reasoning_parser" not in recipe(result)["arguments"]
    assert "arguments.reasoning_parser" in said(result, "left-out")


def test_dflash_gets_its_limits() -> None:
    config = '{"method":"dflash","model":"z-lab/Some-DFlash","num_speculative_tokens":15}'
    result = of_text(minimal(f"vllm serve {{model}} --speculative-config '{config}'"))
    assert recipe(result)["arguments"]["max_num_seqs"] == 16
    assert "arguments.max_num_seqs" in said(result, "changed")


def test_a_repository_that_the_catalog_knows_is_taken_from_there() -> None:
    result = of_text(minimal(model="nvidia/Qwen3.6-35B-A3B-NVFP4"))
    assert recipe(result)["body"]["model"] == "qwen36-35b-a3b-nvidia-nvfp4"
    assert [kind for kind, _ in result.entries] == ["recipe"]


@pytest.mark.parametrize("name", ["everything", "generated", "first", "pair-first"])
def test_what_was_imported_is_checked_like_every_recipe(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for result in of_folder(REGISTRY).values():
        if result.entries:
            write(result, tmp_path / "catalog", replace=False)
    monkeypatch.chdir(tmp_path)
    data = {"services": {"chat": {"recipe": name}}}
    fleet = plan_fleet([HostInput("box", data, lambda _: "inventory")])
    assert not fleet.problems
    found = {one.id for one in fleet.hosts["box"].violations if one.stops}
    assert found == ({"gpu-count"} if name in ("everything", "pair-first") else set())
    warned = [one for one in fleet.hosts["box"].violations if one.id == "model-works"]
    assert any("was imported" in one.observed for one in warned)


# --- Over several hosts


@pytest.mark.parametrize(
    ("name", "ranks"), [("everything", {"tensor": 2}), ("first", {"tensor": 2})]
)
def test_what_needs_several_sparks_is_spread_over_a_cluster(name: str, ranks: object) -> None:
    result = of_folder(REGISTRY, cluster=True)[name]
    made = recipe(result)
    assert made["ranks"] == ranks
    assert not {"tensor_parallel_size", "pipeline_parallel_size"} & set(made["arguments"])
    assert said(result, "hardware")["ranks"].observed == "2 hosts (gb10)"


def test_what_one_spark_runs_has_no_ranks() -> None:
    assert "ranks" not in recipe(of_folder(REGISTRY, cluster=True)["generated"])
    assert "ranks" not in recipe(of_folder(REGISTRY)["everything"])
