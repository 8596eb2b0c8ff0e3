"""Layers and sizes of the KV cache, from configurations of the catalog's kinds."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lab.hub.repositories import MINIATURES
from sparkwright.catalog.entries import KvLayers
from sparkwright.resolve.kv_cache import kv_layers
from sparkwright.resolve.lock import Resolution
from sparkwright.site.fleet import PlannedHost
from sparkwright.site.resolution import with_geometry
from tests.tables import Tables
from tests.unit.builders import catalog, plan, resolution

cases = Tables(__file__)


def _config(repository: str) -> Any:
    (made,) = [miniature for miniature in MINIATURES if miniature.id == repository]
    content = made.newest()["config.json"]
    assert isinstance(content, bytes)
    return json.loads(content)


@cases("name")
def test_a_configuration_agrees_with_the_card(name: str) -> None:
    model = catalog().models[name]
    assert kv_layers(_config(model.repository)) == model.kv


def test_gemma_has_two_kinds_of_layers() -> None:
    assert kv_layers(_config("AEON-7/Gemma-4-26B-A4B-it-Uncensored-NVFP4")) == (
        KvLayers(layers=5, heads=2, head_dim=512),
        KvLayers(layers=25, heads=8, head_dim=256, window=1024),
    )


@cases("config", "expected")
def test_an_unknown_layout_is_not_guessed(config: Any, expected: list[dict[str, int]]) -> None:
    assert kv_layers(config) == tuple(KvLayers(**layer) for layer in expected)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
_keys = ["num_hidden_layers", "num_key_value_heads", "head_dim", "layer_types", "text_config",
         "full_attention_interval", "sliding_window", "hidden_size"]  # fmt: skip


@given(st.dictionaries(st.sampled_from(_keys), _json))
def test_no_configuration_raises_an_error(config: dict[str, Any]) -> None:
    kv_layers(config)


def test_a_models_own_configuration_overrides_the_catalogs_figures() -> None:
    host = plan({"s": {"recipe": "qwen36-35b-a3b-heretic-dflash"}})
    result = resolution(host)
    # 100 times the layers: the context no longer fits, despite the catalog's figures.
    wide = (KvLayers(layers=1000, heads=2, head_dim=256),)
    models = {
        key: replace(model, kv=wide if "heretic" in key else ())
        for key, model in result.models.items()
    }
    planned = {"spark-1": PlannedHost(host, catalog())}
    (judged,) = with_geometry(planned, Resolution(images=result.images, models=models)).values()
    assert [violation.id for violation in judged.violations] == ["kv-cache"]
    (unchanged,) = with_geometry(planned, result).values()
    assert unchanged.violations == ()
