"""vLLM's own recipe of a model that a service names: asked first, carried over, and pinned."""

import re
from pathlib import Path
from typing import Any

import pytest

from sparkwright.findings.finding import errors
from sparkwright.resolve.lock import Lock, from_resolution, read_lock, render_lock
from sparkwright.site.fleet import Fleet
from sparkwright.site.resolution import ask
from tests.tables import Tables
from tests.unit.engines.derivation.repositories import (
    REPOSITORY,
    chat,
    on_the_hub,
    planned,
    repository,
)
from tests.unit.git_registries import git, git_registry

cases = Tables(__file__)

RECIPE = Path(__file__).with_name("qwen3-8b.yaml").read_text()


@pytest.fixture
def registry(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry of vLLM's recipes with one that serves the model, and others that name it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "caches"))
    folder = here / "registry"
    (folder / "models/Qwen").mkdir(parents=True)
    (folder / "models/Qwen/Qwen3-8B.yaml").write_text(RECIPE)
    (folder / "models/Another.yaml").write_text(
        "model: {model_id: example/Another}\nvariants: {default: {}}\n"
        f"guide: not to be confused with {REPOSITORY}\n"
    )
    (folder / "models/Broken.yaml").write_text(f"model: [{REPOSITORY}\n")
    return git_registry(folder)


def rewrite(registry: Path, text: str) -> None:
    """Commit another text of the model's recipe."""
    (registry / "models/Qwen/Qwen3-8B.yaml").write_text(text)
    git(registry, "commit", "--quiet", "-am", "second")


def served(registry: Path, service: dict[str, Any] | None = None, **data: Any) -> Fleet:
    with on_the_hub(repository()):
        return planned(service, registries={"vllm": str(registry)}, **data)


def test_it_is_asked_before_the_models_own_files(registry: Path) -> None:
    fleet = served(registry)
    assert not errors(fleet.hosts["spark-1"].violations)
    service, source = chat(fleet), f"{registry}@{git(registry, 'rev-parse', 'HEAD')}"
    where = f"{source}:models/Qwen/Qwen3-8B.yaml"
    result = dict(service.arguments)
    # As vLLM's authors start it; a Spark's own block size among that.
    assert result["tool_call_parser"] == "qwen3_xml"
    assert result["reasoning_parser"] == "deepseek_r1"
    assert (result["kv_cache_dtype"], result["block_size"]) == ("fp8", 32)
    for name in ("tool_call_parser", "kv_cache_dtype"):
        assert service.origins[f"argument.{name}"] == where
    assert dict(service.environment)["VLLM_USE_DEEP_GEMM"] == "0"
    # How much of the host it takes is not theirs to say.
    assert result["gpu_memory_utilization"] == 0.8
    assert result["max_num_seqs"] == 16
    # What has to be asked for was not.
    assert "speculative_config" not in result
    assert ("vLLM's recipe", where) in {(fact.name, fact.origin) for fact in service.derived}


def test_the_services_own_settings_go_before_it(registry: Path) -> None:
    result = dict(chat(served(registry, {"arguments": {"tool_call_parser": None}})).arguments)
    assert not {"tool_call_parser", "enable_auto_tool_choice"} & set(result)
    assert result["reasoning_parser"] == "deepseek_r1"


def test_a_repository_that_it_does_not_serve_is_read_by_its_files(registry: Path) -> None:
    other = repository(name="Qwen/Qwen3-8B-AWQ")
    with on_the_hub(other):
        fleet = planned({"model": "Qwen/Qwen3-8B-AWQ"}, registries={"vllm": str(registry)})
    assert dict(chat(fleet).arguments)["tool_call_parser"] == "hermes"


def test_the_lock_has_what_it_says_and_no_registry_is_asked_again(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = served(registry, lock_file=str(tmp_path / "fleet.lock"))
    references = [host.plan.references for host in fleet.or_raise().values()]
    monkeypatch.setattr("sparkwright.resolve.lock.ask_registry", _image)
    lock = from_resolution(references, ask(fleet.hosts), Lock(images={}, models={}))
    (tmp_path / "fleet.lock").write_text(render_lock(lock))
    assert read_lock(tmp_path / "fleet.lock") == lock
    assert "Long words" not in render_lock(lock)
    before = chat(fleet).arguments
    rewrite(registry, RECIPE.replace("fp8, --gpu", "auto, --gpu"))
    with on_the_hub():
        again = planned(registries={"vllm": str(registry)}, lock_file=str(tmp_path / "fleet.lock"))
    assert chat(again).arguments == before


def test_a_newer_vllm_than_the_images_is_asked_for(registry: Path) -> None:
    text = RECIPE.replace('"0.9.0"', '"9.1.0"')
    rewrite(registry, text)
    (problem,) = served(registry).problems
    assert "needs vLLM 9.1.0" in problem.observed
    assert (problem.subject.key or "").endswith("services.chat.image_tag")
    assert not served(registry, {"image_tag": "v0.32.0"}).problems


@cases("image", "taken")
def test_what_another_image_needs_is_not_taken(registry: Path, image: str, taken: bool) -> None:
    text = RECIPE.replace("precision: fp8", f"precision: fp8\n    docker_image: {image}")
    rewrite(registry, text)
    service = chat(served(registry))
    assert service.image.name == "registry-1.docker.io/vllm/vllm-openai:v0.32.0"
    assert (dict(service.arguments)["tool_call_parser"] == "qwen3_xml") == taken
    (value,) = (fact.value for fact in service.derived if fact.name == "vLLM's recipe")
    assert value.startswith("not taken") != taken
    if not taken:
        assert image in value


def test_heads_that_draft_for_themselves_are_claimed(registry: Path) -> None:
    text = RECIPE.replace('"ngram"', '"mtp"').replace("opt_in_features: [spec_decoding]", "")
    rewrite(registry, text)
    fleet = served(registry)
    assert not errors(fleet.hosts["spark-1"].violations)
    result = dict(chat(fleet).arguments)
    assert result["speculative_config"] == {"method": "mtp", "num_speculative_tokens": 3}


def test_a_registry_that_can_not_be_had_is_an_error_and_not_another_service(here: Path) -> None:
    (problem,) = served(here / "none").problems
    assert str(here / "none") in str(problem)


def test_nothing_of_it_runs_code_or_opens_the_host(registry: Path) -> None:
    """The attack: whoever writes to the registry has the engine load code, or read files."""
    attacks: list[str] = cases.data["attacks"]
    option = "--enable-prefix-caching,"
    rewrite(registry, RECIPE.replace(option, option + "".join(f" '{item}'," for item in attacks)))
    service = chat(served(registry))
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
