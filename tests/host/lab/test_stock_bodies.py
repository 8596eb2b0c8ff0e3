"""Recipes of stock vLLM for RTX 50 as rendered: started by the fake with the lab's weights."""

from pathlib import Path

import pytest
import yaml

from lab.serving.fake_vllm.model import read_weights
from lab.serving.tags import STOCK, TAGS
from sparkwright.plan.service import render_service
from tests.host.lab.fake_server import Folders, settings_of
from tests.unit.builders import catalog, plan, resolution

RECIPES = [
    recipe
    for recipe in catalog().recipes.values()
    if int(recipe.system.partition(".")[0]) > 9
    and recipe.ranks is None
    and catalog().images[recipe.image].engine == "vllm"
]
VERSIONS = {name: tag.version for tag in TAGS if tag.repository == STOCK for name in tag.names}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory.mktemp("stock"))


@pytest.mark.parametrize("recipe", [recipe.name for recipe in RECIPES])
def test_a_stock_recipe_starts_with_what_it_renders(recipe: str, folders: Folders) -> None:
    entry = catalog().recipes[recipe]
    body = catalog().models[entry.body.model]
    host = plan({"s": {"recipe": recipe}}, "rtx-1")
    (service,) = host.services
    text = render_service(host, service, resolution(host, architectures=("amd64",))).compose
    rendered = yaml.safe_load(text)["services"]["engine"]
    arguments = [str(folders(body.repository)) if word == entry.body.mount else word
             for word in rendered["command"][1:]]  # fmt: skip

    settings = settings_of(arguments, VERSIONS[service.image.tag], "stock")

    assert settings.model.quant_method == ("modelopt" if body.format == "modelopt" else None)
    asked = entry.arguments.get("speculative_config")
    assert (settings.speculation is None) == (asked is None)
    if settings.speculation is not None and isinstance(asked, dict):
        assert settings.speculation.method == asked["method"]
        assert settings.speculation.tokens == asked["num_speculative_tokens"]
    weights = Path(settings.model.path).glob("*.safetensors")
    read = read_weights(settings.model, lambda _done, _count: None)
    assert read == sum(path.stat().st_size for path in weights)


def test_the_lab_has_every_tag_of_stock_vllm() -> None:
    assert set(catalog().images["vllm-openai"].tags) <= set(VERSIONS)
