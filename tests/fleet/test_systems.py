"""Every recipe of the catalog, one after the other, from bare settings to answered requests.

Each recipe is the only service of a host, so that it also replaces another recipe's release.
"""

import json
from collections.abc import Iterator

import pytest

from lab.fakes import GPUS
from tests.fleet.site import ROOT, Site, bare, ssh
from tests.unit.builders import catalog

#: Recipes of a Spark and of a card. The other recipes, with other images, models and figures, are
#: tested together with the faults.
FIRST = ("gemma4-26b-a4b-dflash-agentic", "qwen35-4b-rtx-16gb")
RECIPES = [
    pytest.param(name, marks=[] if name in FIRST else [pytest.mark.faults])
    for name, item in sorted(catalog().recipes.items())
    if item.ranks is None  # tests/fleet/test_cluster.py
]


def _host(recipe: str) -> tuple[str, str]:
    """The host of a recipe, and its GPU: the smallest card with enough memory."""
    needs = catalog().recipes[recipe].needs
    if "12.1" in needs.compute_caps:
        return "spark-2", "gb10"
    if "9.0" in needs.compute_caps:
        return "hopper-1", "h200"
    cards = [
        (int(gpu["memory.total"].split()[0]) / 1024, name)
        for name, gpu in GPUS.items()
        if gpu["compute_cap"] == "12.0"
    ]
    return "rtx-1", min(card for card in cards if card[0] >= (needs.vram_gib or 0))[1]


@pytest.fixture
def systems(site: Site) -> Iterator[Site]:
    """The fleet as planned, which is restored afterwards."""
    site.power_on()
    site.repair()
    yield site
    bare("hopper-1")
    site.repair()


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_deployed_and_answers(systems: Site, recipe: str) -> None:
    host, gpu = _host(recipe)
    systems.gpu(host, kind=gpu)
    text = (ROOT / "inventory/virtual.py").read_text()
    service = {"qwen36": {"recipe": recipe}}
    text += "\n_all = dict(sparks + rtx50)\nsparks = []\nrtx50 = []\n"
    text += f"system = [({host!r}, {{**_all[{host!r}], 'services': {service!r}}})]\n"
    (systems.folder / "inventory/system.py").write_text(text)

    run = systems.deploy(inventory="inventory/system.py")

    (row,) = run.host(host)["services"]
    entry = catalog().recipes[recipe]
    listed = json.loads(
        ssh(host, f"curl -fsS -H 'Authorization: Bearer {systems.key}' localhost:8000/v1/models")
    )
    assert {model["id"] for model in listed["data"]} == set(entry.served_names)
    mounted = filter(None, (entry.body, entry.drafter))
    assert list(row["models"]) == [catalog().models[each.model].repository for each in mounted]
    assert row["smoke"]["passed"] == row["smoke"]["total"] >= 4
    again = systems.deploy(inventory="inventory/system.py")
    assert again.changed == set()
