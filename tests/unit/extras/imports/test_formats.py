"""Recipes of three formats, key by key, as entries of the catalog."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.config.inventory import HostInput
from sparkwright.extras.imports.files import _lasting, write
from sparkwright.site.fleet import plan_fleet
from tests.golden import compare
from tests.unit.extras.imports.recipes import (
    FIXTURES,
    REGISTRY,
    findings_of,
    minimal,
    of_folder,
    of_text,
    recipe,
)

CASES: dict[str, tuple[Path, dict[str, Any]]] = {
    "sparkrun": (REGISTRY, {}),
    "sparkrun-cluster": (REGISTRY, {"cluster": True}),
    "vllm": (FIXTURES / "vllm", {}),
    "vllm-rtx5090": (FIXTURES / "vllm", {"gpu": "rtx5090"}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_key_is_carried_over_or_named(case: str) -> None:
    """Of one recipe with every key, of every format, and of what is not for vLLM."""
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


def test_another_image_can_be_named() -> None:
    text = (REGISTRY / "local.yaml").read_text()
    made = recipe(of_text(text, image="ghcr.io/example/engine@sha256:" + "a" * 64, vllm="0.24.0"))
    assert made["image"] == f"ghcr.io-example-engine-sha256-{'a' * 12}"


@pytest.mark.parametrize(
    ("variant", "message"), [("elsewhere", "mi355x"), ("int2", "there is no variant 'int2'")]
)
def test_a_variant_for_other_hardware_or_of_no_name_is_refused(variant: str, message: str) -> None:
    text = (FIXTURES / "vllm/Example-30B.yaml").read_text()
    assert message in of_text(text, variants=(variant,)).findings[-1].observed


def test_a_parser_goes_with_its_plugin() -> None:
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
    ids = {violation.id for violation in fleet.hosts["box"].violations if violation.stops}
    assert ids == ({"gpu-count"} if name in ("everything", "pair-first") else set())
    warned = [
        violation for violation in fleet.hosts["box"].violations if violation.id == "model-works"
    ]
    assert any("was imported" in item.observed for item in warned)
