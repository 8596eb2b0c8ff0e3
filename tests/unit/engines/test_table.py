"""The table of engines: common parts of all engines, and an image with an unknown engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.config.parse import parse_settings
from sparkwright.engines import ENGINES, engine, metric_names
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib import metrics
from sparkwright.plan.plan import plan_host
from tests.tables import Tables
from tests.unit.builders import SPARK, catalog, origin

cases = Tables(__file__)

NEUTRAL = {
    value
    for name, given in vars(metrics).items()
    if name.isupper() and not name.startswith("_") and name != "TYPE_CHECKING"
    for value in ([given] if isinstance(given, str) else given)
}


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
def test_a_version_has_a_list_of_media_domains_or_not(
    name: str, version: str | None, listed: bool
) -> None:
    assert engine(name).media_list(version) is listed


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
