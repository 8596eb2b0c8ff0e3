"""Quadlets that Podman's generator takes, with what the release on the host has."""

import shlex
from pathlib import Path

import pytest

from tests import quadlet as reader
from tests import systemd
from tests.unit.builders import DIGEST
from tests.unit.extras.handover.services import files, quadlet
from tests.unit.extras.handover.test_kubernetes import RECIPES

PLACE = "etc/containers/systemd/llm-chat.container"


@pytest.mark.parametrize("recipe", RECIPES)
def test_podmans_own_generator_takes_every_recipe(recipe: str, tmp_path: Path) -> None:
    for number, hardening in enumerate(("default", "strict")):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = reader.generated(folder, files("quadlet", recipe=recipe, hardening=hardening))
        assert "ExecStart=" in made
        assert f"@{DIGEST}" in made


def test_systemd_reads_what_is_its_own(tmp_path: Path) -> None:
    """The sections that the generator hands on as they are."""
    text = files("quadlet")[PLACE]
    head, _, rest = text.partition("[Container]")
    service = rest.partition("[Service]")[2]
    unit = f"{head}[Service]\nType=notify\nExecStart=/usr/bin/podman run x\n{service}"
    assert systemd.faults(tmp_path, "llm-chat.service", unit) == []
    problems = unit.replace("Restart=always", "Restart=perhaps")
    assert systemd.faults(tmp_path, "llm-chat.service", problems)


def test_gpus_are_named() -> None:
    uuid = "GPU-22222222-2222-4222-8222-222222222222"
    result = quadlet(gpus=[uuid, 1])["Container"]["AddDevice"]
    assert result == [f"nvidia.com/gpu={uuid}", "nvidia.com/gpu=1"]


@pytest.mark.parametrize("bind", ["0.0.0.0", "10.0.0.5", "::1"])
def test_health_is_asked_in_its_own_network(bind: str) -> None:
    result = quadlet(proxy=False, bind=bind)["Container"]
    (command,) = result["HealthCmd"]
    assert shlex.split(command)[-1] == "http://127.0.0.1:8000/health"
    assert result["PublishPort"] == [f"{f'[{bind}]' if ':' in bind else bind}:8000:8000"]
