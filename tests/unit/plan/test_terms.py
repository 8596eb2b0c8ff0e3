"""Licences and duties are shown once, for every image and model of a fleet."""

import json
from dataclasses import replace

from sparkwright.plan.terms import terms
from tests.unit.builders import catalog, plan
from tests.unit.cli.answering import run

STOCK = "qwen36-35b-a3b-nvfp4-rtx5090"


def test_a_censored_model_has_no_duties() -> None:
    assert terms([(plan({"a": {"recipe": STOCK}}).services[0], catalog())]).duties == {}


def test_an_unnamed_license_is_shown_as_unknown() -> None:
    models = catalog().models
    bare = {name: model.model_copy(update={"license": None}) for name, model in models.items()}
    own = replace(catalog(), models=bare)
    item = plan({"a": {"recipe": STOCK}}).services[0]
    assert terms([(item, own)]).licenses[1].license == "the catalog names no licence"


def test_plan_shows_the_terms_once_at_the_end() -> None:
    text = run("plan", "inventory/lab.py").output
    assert text.count("\nlicences\n") == 1
    assert text.count("  AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4: Apache-2.0") == 1
    assert text.count("your duties, as the cards of uncensored models name them") == 1
    assert text.index("\nlicences\n") > text.index("rtx-1")
    data = json.loads(run("plan", "inventory/lab.py", "--json").output)
    shown = data[0]["services"][0]["licenses"]
    assert shown["AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"] == "Apache-2.0, inherited from Qwen3.6"
