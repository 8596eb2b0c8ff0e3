"""Recipes of three formats as entries of the catalog, and their mods as files and patches."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.config.inventory import HostInput
from sparkwright.extras.imports.command import _lasting, write
from sparkwright.extras.imports.mods import FILES, Mod
from sparkwright.recipes.recipe import Unfit
from sparkwright.site.fleet import plan_fleet
from tests.golden import compare
from tests.tables import Tables
from tests.unit.cli.answering import exits
from tests.unit.extras.imports.recipes import (
    FIXTURES,
    REGISTRY,
    findings_of,
    minimal,
    of_folder,
    of_text,
    recipe,
)

cases = Tables(__file__)

CASES: dict[str, tuple[Path, dict[str, Any]]] = {
    "sparkrun": (REGISTRY, {}),
    "sparkrun-cluster": (REGISTRY, {"cluster": True}),
    "vllm": (FIXTURES / "vllm", {}),
    "vllm-rtx5090": (FIXTURES / "vllm", {"gpu": "rtx5090"}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_key_is_carried_over_or_named(case: str) -> None:
    """One recipe with every key, of every format, and recipes of other engines."""
    folder, options = CASES[case]
    results = {
        name: {
            "format": result.format,
            "entries": {"/".join(key): _lasting(data) for key, data in result.entries.items()},
            "findings": [
                f"{finding.id}: {finding.subject.key}: {finding.observed}"
                for finding in result.findings
            ],
        }
        for name, result in of_folder(folder, **options).items()
    }
    text = yaml.safe_dump(results, sort_keys=False, width=100, allow_unicode=True)
    compare(f"imports/{case}.yaml", text)
    assert "sk-not-for-logs" not in text
    assert "hf_0123456789" not in text


def test_another_image_can_be_chosen() -> None:
    text = (REGISTRY / "local.yaml").read_text()
    made = recipe(
        of_text(text, image="ghcr.io/example/engine@sha256:" + "a" * 64, engine_version="0.24.0")
    )
    assert made["image"] == f"ghcr.io-example-engine-sha256-{'a' * 12}"


@cases("variant", "message")
def test_a_variant_for_other_hardware_or_with_an_unknown_name_is_refused(
    variant: str, message: str
) -> None:
    text = (FIXTURES / "vllm/Example-30B.yaml").read_text()
    assert message in of_text(text, variants=(variant,)).findings[-1].observed


def test_a_parser_is_kept_only_with_its_plugin() -> None:
    result = of_text(
        minimal("vllm serve {model} --reasoning-parser-plugin p.py --reasoning-parser of_plugin")
    )
    assert "reasoning_parser" not in recipe(result)["arguments"]
    assert "arguments.reasoning_parser" in findings_of(result, "left-out")


def test_dflash_gets_its_limits() -> None:
    config = '{"method":"dflash","model":"z-lab/Some-DFlash","num_speculative_tokens":15}'
    result = of_text(minimal(f"vllm serve {{model}} --speculative-config '{config}'"))
    assert recipe(result)["arguments"]["max_num_seqs"] == 16
    assert "arguments.max_num_seqs" in findings_of(result, "changed")


def test_a_repository_in_the_catalog_uses_its_entry() -> None:
    result = of_text(minimal(model="nvidia/Qwen3.6-35B-A3B-NVFP4"))
    assert recipe(result)["body"]["model"] == "qwen36-35b-a3b-nvidia-nvfp4"
    assert [kind for kind, _ in result.entries] == ["recipe"]


@pytest.mark.parametrize("name", ["everything", "generated", "first", "pair-first"])
def test_an_imported_recipe_is_checked_like_every_recipe(name: str, here: Path) -> None:
    for result in of_folder(REGISTRY).values():
        if result.entries:
            write(result, here / "catalog", replace=False)
    data = {"services": {"chat": {"recipe": name}}}
    fleet = plan_fleet([HostInput("box", data, lambda _: "inventory")])
    assert not fleet.problems
    ids = {violation.id for violation in fleet.hosts["box"].violations if violation.stops}
    assert ids == ({"gpu-count"} if name in ("everything", "pair-first") else set())
    warned = [
        violation for violation in fleet.hosts["box"].violations if violation.id == "model-works"
    ]
    assert any("was imported" in item.observed for item in warned)


@cases("config")
def test_doubled_braces_of_version_2_are_json(config: str) -> None:
    value = {"method": "mtp", "num_speculative_tokens": 3}
    text = minimal(f"vllm serve {{model}} --speculative-config '{config}'", defaults={"n": 3})
    text = text.replace(" --gpu-memory-utilization {gpu_memory_utilization}", "")
    assert recipe(of_text(text))["arguments"]["speculative_config"] == value


@pytest.mark.parametrize("runtime", ["tensorrt-llm", "mlx", "vllm-omni", "atlas"])
def test_an_unsupported_runtime_is_refused_and_the_supported_runtimes_are_named(
    runtime: str,
) -> None:
    (finding,) = of_text(minimal(runtime=runtime)).findings
    assert (finding.subject.key, finding.observed) == ("runtime", runtime)
    assert "vllm, vllm-distributed, vllm-ray, eugr-vllm" in finding.remedy
    assert recipe(of_text(minimal(runtime="vllm-ray")))


@cases("runtime", "model", "command", "name", "arguments")
def test_recipes_of_every_supported_engine_are_imported(
    runtime: str, model: str, command: str, name: str, arguments: dict[str, Any]
) -> None:
    text = minimal(command, runtime=runtime, container="example/engine:v1")
    result = of_text(text.replace("example/Small-4B", model))
    ((_, image),) = [item for item in result.entries.items() if item[0][0] == "image"]
    assert image["engine"] == name
    assert recipe(result)["arguments"].items() >= arguments.items()
    assert "tools" not in recipe(result)["arguments"]
    ((_, body),) = [item for item in result.entries.items() if item[0][0] == "model"]
    assert body["repository"] == model.partition(":")[0]
    assert body.get("file") == ("Small-4B-Q8_0.gguf" if name == "llamacpp" else None)


def test_the_drafter_of_an_sglang_recipe_is_a_mount() -> None:
    drafts = "--speculative-algorithm DFLASH --speculative-draft-model-path z-lab/Other-DFlash"
    command = f"sglang serve --model-path {{model}} {drafts}"
    container = "lmsysorg/sglang:v0.5.20-cu130"
    made = recipe(of_text(minimal(command, runtime="sglang", container=container)))
    assert made["drafter"]["model"] == "z-lab-other-dflash"
    assert made["arguments"]["speculative_draft_model_path"] == made["drafter"]["mount"]


def test_a_drafter_keeps_its_revision() -> None:
    config = '{"method":"eagle3","model":"z-lab/Other-EAGLE3","revision":"v2"}'
    result = of_text(minimal(f"vllm serve {{model}} --speculative-config '{config}'"))
    drafter = result.entries["model", recipe(result)["drafter"]["model"]]
    assert (drafter["repository"], drafter["revision"]) == ("z-lab/Other-EAGLE3", "v2")
    assert not findings_of(result, "left-out")


@cases("container", "written", "kept")
def test_a_template_that_vllms_image_has_is_kept(
    container: str, written: str, kept: str | None
) -> None:
    result = of_text(
        minimal(f"vllm serve {{model}} --chat-template {written}", container=container)
    )
    assert recipe(result)["arguments"].get("chat_template") == kept
    named = findings_of(result, "left-out").get("arguments.chat_template")
    assert bool(named) == (kept is None)
    assert not named or "the image is not known to have this file" in named.reason


def test_an_option_and_its_value_in_one_item_become_two_words() -> None:
    text = (FIXTURES / "vllm/Example-30B.yaml").read_text()
    base = "[--trust-remote-code, --max-model-len auto, '--limit-mm-per-prompt={\"image\": 2}']"
    text = text.replace("base_args: [--trust-remote-code]", f"base_args: {base}")
    made = recipe(of_text(text, variants=("fp8",)))["arguments"]
    assert (made["max_model_len"], made["limit_mm_per_prompt"]) == ("auto", {"image": 2})


def test_an_embedding_model_of_vllms_recipes_is_served_for_pooling() -> None:
    text = (FIXTURES / "vllm/Example-30B.yaml").read_text().replace("[text]", "[embedding]")
    assert recipe(of_text(text, variants=("fp8",)))["arguments"]["runner"] == "pooling"


@cases("keys", "code")
def test_an_import_that_lost_a_needed_part_exits_with_1(
    keys: dict[str, Any], code: int, here: Path
) -> None:
    Path("mine.yaml").write_text(minimal(**keys))
    exits(code, "import", "mine.yaml")
    assert Path("catalog/recipes/mine.yaml").exists()


def test_check_names_arguments_that_an_earlier_import_kept(here: Path) -> None:
    result = of_text(minimal())
    write(result, here / "catalog", replace=False)
    path = here / "catalog/recipes/mine.yaml"
    data = yaml.safe_load(path.read_text())
    config = json.dumps({"kv_connector_module_path": "evil.code", "kv_role": ["a"]})
    data["arguments"] |= {"middleware": "evil.code", "kv_transfer_config": config}
    data["environment"] = {"VLLM_PLUGINS": "p", "MAX_JOBS": "4"}
    path.write_text(yaml.safe_dump(data))

    def named(**settings: Any) -> set[str]:
        data = {"services": {"s": {"recipe": "mine"}}, **settings}
        fleet = plan_fleet([HostInput("box", data, lambda _: "inventory")])
        findings = [each for each in fleet.hosts["box"].violations if each.id == "imported-setting"]
        assert not any(finding.stops for finding in findings)
        return {finding.observed.partition(" ")[0] for finding in findings}

    parts = {"kv_transfer_config.kv_connector_module_path", "kv_transfer_config.kv_role"}
    assert named() == {"middleware", "VLLM_PLUGINS", *parts}
    assert named(allowed_in_recipes={"VLLM_PLUGINS": "our own plugin"}) == {"middleware", *parts}


def test_a_layout_over_several_sparks_is_imported_with_its_own_arguments() -> None:
    """The recipe of DeepSeek-V4-Flash in vLLM's recipes needs 8 GPUs in one box, or two Sparks."""
    page = {
        "model": {"model_id": "example/Large"},
        "variants": {"default": {
            "vram_minimum_gb": 200,
            "hardware_overrides": {
                "blackwell": {"extra_args": ["--moe-backend", "deep_gemm"]},
                "dgx_spark_gb10": {"extra_env": {"NCCL_SOCKET_IFNAME": "$IFACE_NAME", "A": "1"}},
            },
        }},
        "strategy_hardware": {"multi_node_tp": {"dgx_spark_gb10": "supported"}},
        "strategy_overrides": {
            "single_node_tp": {"tp": 8},
            "multi_node_tp": {
                "hardware_overrides": {"blackwell": {"extra_args": ["--moe-backend", "triton"]}},
            },
        },
    }  # fmt: skip
    result = of_text(yaml.safe_dump(page), cluster=True)
    made = recipe(result)
    assert made["ranks"] == {"tensor": 2}
    assert made["arguments"]["moe_backend"] == "triton"
    assert "NCCL_SOCKET_IFNAME" not in made["environment"]
    changed = findings_of(result, "changed")["env.NCCL_SOCKET_IFNAME"]
    assert "its own host's network" in changed.reason
    page["strategy_hardware"] = {"multi_node_tp": {"dgx_spark_gb10": "unsupported"}}
    alone = recipe(of_text(yaml.safe_dump(page), cluster=True))
    assert alone["ranks"] == {"tensor": 8}
    assert alone["arguments"]["moe_backend"] == "deep_gemm"


def test_an_opt_in_feature_that_a_variant_turns_on_is_imported_and_passes_check(here: Path) -> None:
    """The example is DeepSeek-V4-Flash, whose body contains DSpark's draft module."""

    def args(tokens: int) -> dict[str, list[str]]:
        config = {"method": "dspark", "num_speculative_tokens": tokens}
        return {"args": ["--speculative-config", json.dumps(config)]}

    modes = {
        "mtp": args(2),
        "dspark": {**args(7), "hardware_overrides": {"dgx_spark_gb10": args(5), "hopper": args(3)}},
    }
    page = {
        "model": {"model_id": "example/Fused", "docker_image": "vllm/vllm-openai:v0.33.0"},
        "features": {"drafting": {"default_mode": "mtp", "modes": modes}},
        "opt_in_features": ["drafting"],
        "variants": {"fused": {"default_modes": {"drafting": "dspark"}}, "plain": {}},
    }
    text = yaml.safe_dump(page)
    for gpu, tokens in (("gb10", 5), ("rtx5090", 7), ("h200", 3)):
        made = recipe(of_text(text, variants=("fused",), gpu=gpu))["arguments"]
        expected = {"method": "dspark", "num_speculative_tokens": tokens}
        assert made["speculative_config"] == expected
    assert "features.drafting" in findings_of(of_text(text, variants=("plain",)), "left-out")
    write(of_text(text, variants=("fused",)), here / "catalog", replace=False)
    data = {"services": {"s": {"recipe": "mine-fused"}}}
    fleet = plan_fleet([HostInput("box", data, lambda _: "inventory")])
    assert [item.id for item in fleet.hosts["box"].violations if item.stops] == []


SHAPES: dict[str, dict[str, Any]] = cases.data["shapes"]
READ = [name for name, shape in SHAPES.items() if "becomes" in shape]
#: A program that appends its name, folder, input and arguments to the file that RECORD names.
RECORDER = """#!/usr/bin/python3
import json, os, sys
stdin = os.path.basename(os.readlink("/proc/self/fd/0"))
with open(os.environ["RECORD"], "a") as record:
    call = [os.path.basename(sys.argv[0]), os.getcwd(), stdin, *sys.argv[1:]]
    print(json.dumps(call), file=record)
"""


def _steps(script: str, files: dict[str, str]) -> list[list[str]]:
    """Files and patches of a mod, in the form of the YAML table."""
    mod = Mod("fix", {**files, "run.sh": script})
    mod.read(remote_code=True)
    steps = []
    for file in mod.files:
        hub = file.repository and [file.repository, str(file.revision), str(file.file)]
        steps.append(["hub", file.at, *hub] if hub else ["file", file.at, _name(file.source)])
    for patch in mod.patches:
        steps += [["image", file.at, _name(file.source)] for file in patch.files]
        if patch.patch:
            marks = [mark for mark in ("optional", "reverse") if getattr(patch, mark)]
            steps.append(["patch", str(patch.into), _name(patch.patch), *marks])
    return steps


def _name(source: Any) -> str:
    return str(source).rpartition("/")[2]


@pytest.mark.parametrize("name", SHAPES)
def test_a_mod_is_read_as_data_or_refused_with_its_line(name: str) -> None:
    shape = SHAPES[name]
    if name in READ:
        assert _steps(shape["script"], shape["files"]) == shape["becomes"]
        return
    with pytest.raises(Unfit) as refused:
        _steps(shape["script"], shape["files"])
    line, reason = shape["refused"]
    assert refused.value.observed == f"mod fix: {line}"
    assert reason in refused.value.reason


def test_46_of_64_public_recipes_have_readable_mods() -> None:
    rows = cases.data["recipes"]
    whole = [number for names, number in rows if {*names} <= {*READ}]
    assert (sum(whole), sum(number for _, number in rows)) == (46, 64)


@pytest.mark.parametrize("name", READ)
def test_bash_has_the_same_effects_as_the_parser(name: str, tmp_path: Path) -> None:
    """The script runs in the mod's folder; cp, patch and wget only record their arguments."""
    shape, programs, work = SHAPES[name], tmp_path / "bin", tmp_path / "work"
    for folder in (programs, work, tmp_path / "mod"):
        folder.mkdir()
    for program in ("cp", "patch", "wget"):
        (programs / program).write_text(RECORDER)
        (programs / program).chmod(0o755)
    for file, text in {**shape["files"], "run.sh": shape["script"]}.items():
        (tmp_path / "mod" / file).write_text(text)
    record = tmp_path / "record"
    environment = {"PATH": str(programs), "WORKSPACE_DIR": str(work), "RECORD": str(record)}
    subprocess.run(["/bin/bash", "run.sh"], cwd=tmp_path / "mod", env=environment, check=True)
    steps = []
    for call in record.read_text().replace(f"{work}", FILES[:-1]).splitlines():
        program, folder, stdin, *arguments = json.loads(call)
        if program == "cp":
            *names, target = arguments
            kind = "file" if target.startswith(FILES) else "image"
            steps += [[kind, target + each * target.endswith("/"), each] for each in names]
        elif program == "patch":
            marks = ["optional"] * (f"< {stdin} ||" in shape["script"])
            marks += ["reverse"] * ("-R" in arguments)
            steps.append(["patch", arguments[arguments.index("-d") + 1], stdin, *marks])
        else:
            *repository, _, revision, file = arguments[0].split("/")[3:]
            steps.append(["hub", f"{folder}/{file}", "/".join(repository), revision, file])
    assert steps == shape["becomes"]


@cases("line")
def test_a_line_that_is_not_fully_understood_refuses_the_mod(line: str) -> None:
    files = {"a.jinja": "a", "c.jinja": "c", "b.py": "b", "fix.patch": "d", "blob": "\0"}
    _steps("set -e\ncp a.jinja $WORKSPACE_DIR/\n", files)
    with pytest.raises(Unfit):
        _steps(f"set -e\ncp a.jinja $WORKSPACE_DIR/\n{line}\n", files)
