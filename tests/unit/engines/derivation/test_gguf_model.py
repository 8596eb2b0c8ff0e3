"""A service that names a repository of GGUF files: its chosen file, and its entry in the lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from sparkwright.findings.user_error import UserError
from sparkwright.resolve.gguf import read_header
from sparkwright.resolve.gguf_facts import facts_of_headers
from sparkwright.resolve.hub import PinnedFile, ResolvedModel
from sparkwright.resolve.lock import Lock, read_lock, render_lock
from sparkwright.site.fleet import Fleet
from tests.gguf_headers import gguf
from tests.tables import Tables
from tests.unit.engines.derivation.repositories import COMMIT, chat, on_the_hub, planned, repository

cases = Tables(__file__)

REPOSITORY = "unsloth/X-GGUF"


@contextmanager
def hub(label: str = "Q4_K_M") -> Iterator[list[str]]:
    """A hub with this quantization, and the requested choices."""
    choices: list[str] = []
    data = gguf()
    header = read_header(lambda at, length: data[at : at + length], len(data))

    def resolve(endpoint: str, name: str, revision: str, *_: object, **more: Any) -> ResolvedModel:
        choices.append(more["choice"] + ",preferred" * more["gguf"])
        files = {
            path: PinnedFile(len(data), "a" * 64) for path in (f"X-{label}.gguf", "mmproj.gguf")
        }
        facts, kv = facts_of_headers(
            [header], file=f"X-{label}.gguf", projector=("mmproj.gguf", 9), marks=("tools",)
        )
        return ResolvedModel(name, COMMIT, None, files, kv, facts)

    with patch("sparkwright.site.fleet.resolve_model", resolve):
        yield choices


def box(model: str = REPOSITORY, **data: Any) -> Fleet:
    """A box with a card of 15.9 GiB and this model."""
    return planned({"model": model}, "rtx50", **{"gpu": "rtx5080", **data})


@cases("model", "choice")
def test_the_models_reference_has_the_services_choice_of_a_file(model: str, choice: str) -> None:
    with hub() as choices:
        service = chat(box(model))
    assert choices == [choice]
    assert service.body.key == f"{REPOSITORY}@main:{choice}"
    assert (service.file, service.projector) == ("X-Q4_K_M.gguf", "mmproj.gguf")


def test_the_plan_names_the_chosen_file_and_the_reason() -> None:
    with hub():
        facts = {fact.name: fact for fact in chat(box()).derived}
    assert facts["chosen"].value == f"Q4_K_M of {REPOSITORY}"
    assert facts["chosen"].origin.startswith("the largest file that fits 15.9GiB")


@cases("group", "data", "choice")
def test_the_hosts_settings_determine_the_memory(
    group: str, data: dict[str, Any], choice: str
) -> None:
    with hub() as choices:
        planned({"model": REPOSITORY}, group, **data)
    assert choices == [choice]


def test_services_that_name_a_model_share_the_card() -> None:
    services = {
        name: {"model": f"{REPOSITORY}{end}", "port": port}
        for name, end, port in (("a", "", 8001), ("b", ":Q8_0", 8002))
    }
    with hub() as choices:
        box(services=services)
        box(services={"a": services["a"] | {"engine": "llamacpp"}})
    assert sorted(choices[:2]) == ["8.0GiB", "Q8_0"]
    assert choices[2:] == ["15.9GiB,preferred"]


def test_a_locked_fleet_keeps_its_file_without_a_request(tmp_path: Path) -> None:
    path = tmp_path / "fleet.lock"
    with hub():
        (host,) = box().or_raise().values()
    path.write_text(render_lock(Lock(images={}, models=dict(host.resolved_models))))
    kept = read_lock(path)
    assert kept is not None
    (reference,) = host.plan.references.models
    assert list(kept.models[reference.key].files) == ["X-Q4_K_M.gguf", "mmproj.gguf"]
    with hub("Q8_0") as choices:
        assert chat(box(lock_file=str(path))).file == "X-Q4_K_M.gguf"
        assert not choices
        # Another card leads to another choice.
        assert chat(box(lock_file=str(path), gpu="rtx5090")).file == "X-Q8_0.gguf"
    assert choices == ["31.8GiB"]


def test_a_model_of_safetensors_is_pinned_without_the_memory() -> None:
    with on_the_hub(repository()):
        service = chat(planned({}, "rtx50", gpu="rtx5090"))
    assert service.body.key == f"{repository().repository}@main"


@cases("end")
def test_unknown_quantizations_are_refused(end: str) -> None:
    with hub(), pytest.raises(UserError, match="model"):
        box(f"{REPOSITORY}{end}").or_raise()
