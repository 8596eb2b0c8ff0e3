"""Repositories of models as the hub would describe them, and fleets that name them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sparkwright.catalog import Catalog, load_catalog
from sparkwright.config.inventory import HostInput
from sparkwright.engines import template_marks
from sparkwright.plan.plan import ServicePlan
from sparkwright.resolve.hub import PinnedFile, ResolvedModel
from sparkwright.resolve.kv_cache import kv_layers
from sparkwright.resolve.model_facts import facts_of
from sparkwright.site.fleet import Fleet, plan_fleet
from tests.tables import Tables
from tests.unit.builders import catalog

cases = Tables(__file__)

REPOSITORY, COMMIT = "Qwen/Qwen3-8B-FP8", "abc1234" + "0" * 33
CONFIG: dict[str, Any] = cases.data["CONFIG"]
GENERATION = {"temperature": 0.6, "top_p": 0.95, "top_k": 20}
TEMPLATE = '{% if tools %}<tool_call>{"name"{% endif %}{% if enable_thinking %}<think>{% endif %}'
FILES = {"config.json": 900, "model.safetensors": 9_400_000_000, "tokenizer.json": 7_000_000}


def repository(
    *,
    config: dict[str, Any] | None = None,
    generation: dict[str, Any] | None = None,
    template: str | None = TEMPLATE,
    files: dict[str, int] = FILES,
    name: str = REPOSITORY,
    task: str | None = None,
) -> ResolvedModel:
    """A commit, by default with the values of Qwen3-8B-FP8."""
    own = CONFIG if config is None else config
    facts = facts_of(
        own, GENERATION if generation is None else generation, {}, template=template,
        marks=template_marks(), license="apache-2.0", task=task,
    )  # fmt: skip
    rows = {path: PinnedFile(size, None, "b" * 40) for path, size in files.items()}
    return ResolvedModel(name, COMMIT, None, rows, kv_layers(own), facts)


@contextmanager
def on_the_hub(*models: ResolvedModel) -> Iterator[list[tuple[str, str]]]:
    """Give the hub these models; return the requests: repository and revision."""
    asked: list[tuple[str, str]] = []
    expected = {model.repository: model for model in models}

    def resolve(endpoint: str, name: str, revision: str, *_: object, **__: object) -> ResolvedModel:
        asked.append((name, revision))
        return expected[name]

    with patch("sparkwright.site.fleet.resolve_model", resolve):
        yield asked


def planned(service: dict[str, Any] | None = None, group: str = "sparks", **data: Any) -> Fleet:
    """A host with one service, ``chat``."""
    services = {"chat": {"model": REPOSITORY, **(service or {})}}
    host = HostInput(
        "spark-1", {"services": services, **data}, lambda _: "group_data/sparks.py",
        frozenset({"all", group}),
    )  # fmt: skip
    with patch("sparkwright.site.fleet.load_catalog", _catalog):
        return plan_fleet([host])


def _catalog(directories: list[Path]) -> Catalog:
    """Catalog, read once for all tests without their own files."""
    return catalog() if len(directories) == 1 else load_catalog(directories)


def chat(fleet: Fleet) -> ServicePlan:
    """The planned service ``chat``; a problem of the plan raises an error."""
    (host,) = fleet.or_raise().values()
    return next(service for service in host.plan.services if service.name == "chat")
