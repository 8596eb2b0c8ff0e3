"""The table of engines: common parts of all engines, and an image with an unknown engine."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.config.parse import parse_settings
from sparkwright.engines import ENGINES, engine, metric_names
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib import metrics
from sparkwright.plan.plan import plan_host
from tests.tables import Tables
from tests.unit.builders import ROOT, SPARK, catalog, origin

cases = Tables(__file__)

NEUTRAL = {
    value.partition(":")[0]
    for name, given in vars(metrics).items()
    if name.isupper() and not name.startswith("_") and name != "TYPE_CHECKING"
    for value in ([given] if isinstance(given, str) else given)
}


def _kept(fixture: str) -> Any:
    """Routes or metrics of a real server."""
    return json.loads((ROOT / "tests/fixtures" / fixture).read_text())


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_defines_all_parts(name: str) -> None:
    own = engine(name)
    assert own.name == name
    assert set(own.metrics) <= NEUTRAL
    assert {metrics.GENERATED, metrics.READ, metrics.RUNNING} <= set(own.metrics)
    assert own.check_texts.is_file()
    assert set(own.routes.open).isdisjoint({"/v1/chat/completions"})
    assert catalog().images[own.stock_image].engine == name
    assert Path(own.program).name == own.program


@cases("name", "version", "listed")
def test_media_domains_depend_on_the_version(name: str, version: str | None, listed: bool) -> None:
    assert engine(name).media_list(version) is listed


@cases("name", "fixture", "changes")
def test_clients_routes_exist_and_change_nothing(name: str, fixture: str, changes: str) -> None:
    real = {re.sub(r"{\w+}", "{id}", each) for each in _kept(fixture)}
    own = {f"{method} {path}" for method, path in engine(name).routes.clients}
    assert own <= real
    assert {each for each in real if re.search(changes, each)}.isdisjoint(own)


def test_metrics_of_sglang_equal_its_own_collectors() -> None:
    real, own = _kept("sglang/0.5.17/metrics.json"), engine("sglang")
    names = {*own.metrics.values(), *own.graphs.values()}
    assert {re.sub("_(sum|count)$", "", name) for name in names} <= set(real)


def test_figures_of_the_real_sglang_on_a_gpu_are_read() -> None:
    real, own = _kept("sglang/0.5.17/h200.json"), engine("sglang")
    neutral = {theirs: name for name, theirs in own.metrics.items()}
    figures = metrics.totals("\n".join(real["metrics"]), neutral)
    assert (figures[metrics.GENERATED], figures[metrics.READ]) == (193, 204)
    assert (figures[metrics.RUNNING], figures[metrics.WAITING]) == (0, 0)
    assert figures["first_token_count"] == 23


def test_the_real_sglang_answers_only_health_without_a_key() -> None:
    statuses = _kept("sglang/0.5.17/h200.json")["statuses"]
    assert {path for path, codes in statuses.items() if codes != [401]} == {
        "/health", "/health_generate",
    }  # fmt: skip


def test_no_two_engines_share_the_name_of_a_metric() -> None:
    assert len(metric_names()) == sum(len(engine(name).metrics) for name in ENGINES)


def test_an_image_with_an_unknown_engine_is_refused() -> None:
    expected = catalog()
    images = {
        name: image.model_copy(update={"engine": "vlm"}) for name, image in expected.images.items()
    }
    settings = parse_settings("spark-1", {"services": SPARK}, origin)
    changed = replace(expected, images=images)
    with pytest.raises(UserError, match=r"(?s)there is no engine 'vlm'.*did you mean 'vllm'\?"):
        plan_host("spark-1", settings, changed, origin)
