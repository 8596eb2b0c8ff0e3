"""A model by its repository's name, asked of the lab's hub, and started by the fake as rendered."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab.hub.miniature import build
from lab.hub.qwen3_fp8 import CONTEXT, MINIATURE, REPOSITORY
from lab.hub.serving import running
from lab.hub.store import Store
from sparkwright.plan.service import render_service
from tests.host.lab.fake_server import Folders, settings_of
from tests.unit.builders import resolution
from tests.unit.engines.derivation.repositories import chat, planned


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("hub")
    build(MINIATURE, Store(data), 1.0, "test")
    with running(data) as url:
        yield url


def test_what_the_hub_says_is_enough_to_start_it(hub: str, tmp_path: Path) -> None:
    fleet = planned(hub_endpoint=hub)
    service = chat(fleet)
    (host,) = fleet.hosts.values()
    (model,) = host.resolved_models.values()
    assert model.facts is not None
    assert (model.facts.quantization, model.facts.context) == ("fp8", CONTEXT)
    assert model.facts.license == "apache-2.0"
    assert host.catalog.models[service.body.name].capabilities == ("tools", "thinking")

    text = render_service(host.plan, service, resolution(host.plan)).compose
    arguments = yaml.safe_load(text)["services"]["engine"]["command"][1:]
    folder = str(Folders(tmp_path)(REPOSITORY))
    texts = [folder if word == service.body.mount else word for word in arguments]
    settings = settings_of(texts, "0.32.0", "stock")
    assert settings.model.quant_method == "fp8"
    assert settings.reasoning_parser == "qwen3"
