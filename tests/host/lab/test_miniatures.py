"""The miniatures beside those of the 35B model: their files, and the serving fake with each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.hub import gemma4_body, other_drafters, qwen27b_bodies
from lab.hub.weights import Tensor
from lab.serving.fake_vllm.model import Model, read_weights
from tests.host.lab.fake_server import Folders, settings_of
from tests.host.lab.test_serving import COMMANDS

AEON = "AEON-7/Qwen3.6-27B-AEON-Ultimate-Uncensored"
MTP = f"{AEON}-Multimodal-NVFP4-MTP"
XS = f"{AEON}-Multimodal-NVFP4-MTP-XS"
COMPRESSED = f"{AEON}-NVFP4"
QWEN35 = "AEON-7/DFlash-Qwen3.5-27B-Uncensored-NVFP4"
GEMMA = "AEON-7/Gemma-4-26B-A4B-it-Uncensored-NVFP4"
BODIES = {
    MTP: "modelopt",
    XS: "modelopt",
    COMPRESSED: "compressed-tensors",
    QWEN35: "modelopt",
    GEMMA: "compressed-tensors",
}
DRAFTERS = (
    "z-lab/Qwen3.6-27B-DFlash",
    "z-lab/Qwen3.5-27B-DFlash",
    "z-lab/gemma-4-26B-A4B-it-DFlash",
)
MIB = 1 << 20


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory.mktemp("miniatures"))


def published(tensors: list[Tensor]) -> float:
    return sum(tensor.size for tensor in tensors) / 1e9


def test_full_shapes_come_to_the_published_sizes() -> None:
    found = {body.repository: published(body.tensors()) for body in qwen27b_bodies.BODIES}
    # The 26 and 15.3 GB are what a file listing says, in units of 1024.
    assert found[COMPRESSED] / 1.0737 == pytest.approx(26, rel=0.02)
    assert found[XS] == pytest.approx(21, rel=0.03)
    assert found[QWEN35] == pytest.approx(20, rel=0.03)
    assert found[MTP] > found[XS]
    gemma = gemma4_body.tensors(gemma4_body.ALL_EXPERTS)
    assert published(gemma) / 1.0737 == pytest.approx(15.3, rel=0.01)
    assert len(gemma) == 47_648
    assert published(other_drafters.QWEN36_27B.tensors()) == pytest.approx(3.3, rel=0.06)
    assert published(other_drafters.QWEN35_27B.tensors()) == pytest.approx(4, rel=0.15)


# --- The serving fake ------------------------------------------------------------------------


def words_of(source: str, body: Path, drafter: Path | None) -> list[str]:
    """The words of a card's command after `serve`, with these directories."""
    (command,) = (each for each in COMMANDS if each["source"].startswith(source))
    words: list[str] = command["words"][1:]
    words[0:1] = [str(body)]
    if drafter is not None:
        place = words.index("--speculative-config") + 1
        words[place] = json.dumps({**json.loads(words[place]), "model": str(drafter)})
    return words


def loaded(model: Model | None) -> int:
    """Load a model as the fake does; all bytes of its weights are read."""
    assert model is not None
    size = read_weights(model, lambda _done, _count: None)
    assert size == sum(path.stat().st_size for path in Path(model.path).glob("*.safetensors"))
    return size


@pytest.mark.parametrize(
    ("body", "source", "drafter", "tokens"),
    [
        (MTP, "27B card, quickstart", DRAFTERS[0], 12),
        (XS, "27B card, quickstart", DRAFTERS[0], 12),
        (GEMMA, "27B card, Gemma 26B", DRAFTERS[2], 10),
        (GEMMA, "Gemma 26B card, production", DRAFTERS[2], 10),
    ],
)
def test_pairs_start_with_the_commands_of_their_cards(
    body: str, source: str, drafter: str, tokens: int, folders: Folders
) -> None:
    settings = settings_of(words_of(source, folders(body), folders(drafter)))
    assert settings.model.quant_method == BODIES[body]
    assert settings.speculation is not None
    assert (settings.speculation.method, settings.speculation.tokens) == ("dflash", tokens)
    assert loaded(settings.model) > loaded(settings.drafter) > MIB
