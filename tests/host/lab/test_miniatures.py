"""The miniatures beside those of the 35B model: their files, and the serving fake with each."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from lab.hub import gemma4_body, other_drafters, qwen27b_bodies
from lab.hub.miniature import Miniature
from lab.hub.repositories import MINIATURES
from lab.hub.weights import DTYPE_BYTES, Tensor
from lab.serving.fake_vllm.model import Model, open_model, read_weights
from lab.serving.fake_vllm.refusal import Refusal
from lab.serving.fake_vllm.settings import Settings
from tests.host.lab.test_serving import COMMANDS, settings_of

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


def miniature(name: str) -> Miniature:
    (found,) = (each for each in MINIATURES if each.id == name)
    return found


class Folders:
    """Directories with the newest revision of each miniature, made when first asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(self, name: str) -> Path:
        folder = self._root / name
        if folder.is_dir():
            return folder
        folder.mkdir(parents=True)
        made = miniature(name)
        for path, content in made.revisions[-1].files(made.size).items():
            chunks = iter([content]) if isinstance(content, bytes) else content()
            (folder / path).write_bytes(b"".join(chunks))
        return folder

    def json(self, name: str, path: str) -> Any:
        return json.loads((self(name) / path).read_bytes())


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory.mktemp("miniatures"))


def headers(folder: Path) -> dict[str, dict[str, Any]]:
    """The tensors of each weight file, checked against its size."""
    found = {}
    for path in folder.glob("*.safetensors"):
        content = path.read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        entries = json.loads(content[8:start])
        entries.pop("__metadata__")
        end = 0
        for entry in entries.values():
            assert entry["data_offsets"][0] == end
            end += math.prod(entry["shape"]) * DTYPE_BYTES[entry["dtype"]]
            assert entry["data_offsets"][1] == end
        assert start + end == len(content)
        found[path.name] = entries
    return found


def shapes(folder: Path) -> dict[str, list[int]]:
    return {
        name: entry["shape"] for part in headers(folder).values() for name, entry in part.items()
    }


# --- Files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*BODIES, *DRAFTERS])
def test_weights_are_whole_small_and_all_in_the_index(name: str, folders: Folders) -> None:
    folder = folders(name)
    parts = headers(folder)
    placed = {tensor: file for file, part in parts.items() for tensor in part}
    assert len(placed) == sum(len(part) for part in parts.values()) > 0
    if len(parts) > 1:
        index = folders.json(name, "model.safetensors.index.json")
        assert index["weight_map"] == placed
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert size < (7 if name in BODIES else 2.2) * MIB


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


@pytest.mark.parametrize("name", [MTP, XS, QWEN35])
def test_modelopt_bodies_say_so_twice_and_have_an_mtp_head(name: str, folders: Folders) -> None:
    quantization = folders.json(name, "config.json")["quantization_config"]
    older = folders.json(name, "hf_quant_config.json")
    assert (quantization["quant_method"], quantization["quant_algo"]) == ("modelopt", "NVFP4")
    assert older["producer"]["name"] == "modelopt"
    assert older["quantization"]["quant_algo"] == "NVFP4"
    assert older["quantization"]["exclude_modules"] == quantization["ignore"]
    text = folders.json(name, "config.json")["text_config"]
    assert text["mtp_num_hidden_layers"] == 1
    assert len([tensor for tensor in shapes(folders(name)) if tensor.startswith("mtp.")]) == 15


def test_hybrid_bodies_have_the_layers_of_the_cards(folders: Folders) -> None:
    for name in (MTP, XS, COMPRESSED, QWEN35):
        config = folders.json(name, "config.json")
        assert config["architectures"] == ["Qwen3_5ForConditionalGeneration"]
        kinds = config["text_config"]["layer_types"]
        assert (kinds.count("linear_attention"), kinds.count("full_attention")) == (48, 16)
        assert sum(tensor.startswith("model.visual.") for tensor in shapes(folders(name))) == 333
    gdn = "model.language_model.layers.0.linear_attn.in_proj_qkv"
    mlp = "model.language_model.layers.0.mlp.down_proj"
    full, small, packed = (shapes(folders(name)) for name in (MTP, XS, COMPRESSED))
    # BF16 is of the whole width, NVFP4 has two values per byte; modelopt's scales are scalars.
    assert full[f"{gdn}.weight"][1] == packed[f"{gdn}.weight"][1] == 5120
    assert small[f"{gdn}.weight"][1] == 5120 / 2
    assert full[f"{mlp}.weight"][1] == packed[f"{mlp}.weight_packed"][1] == 17_408 / 2
    assert full[f"{mlp}.weight_scale_2"] == []
    assert not any(tensor.startswith("mtp.") for tensor in packed)


def test_the_gemma_body_has_what_its_card_says(folders: Folders) -> None:
    config = folders.json(GEMMA, "config.json")
    text = config["text_config"]
    assert config["architectures"] == ["Gemma4ForConditionalGeneration"]
    assert "audio_config" in config
    assert text["layer_types"].count("sliding_attention") == 25
    assert text["layer_types"].count("full_attention") == 5
    assert (text["sliding_window"], text["head_dim"], text["global_head_dim"]) == (1024, 256, 512)
    assert (text["num_experts"], text["num_experts_per_tok"]) == (128, 8)
    assert config["quantization_config"]["format"] == "nvfp4-pack-quantized"
    generation = folders.json(GEMMA, "generation_config.json")
    assert generation["eos_token_id"] == [1, 106, 50, 98, 100, 101]
    assert folders.json(GEMMA, "preprocessor_config.json")["processor_class"] == "Gemma4Processor"
    assert folders.json(GEMMA, "processor_config.json")["processor_class"] == "Gemma4Processor"
    names = shapes(folders(GEMMA))
    assert sum(name.startswith("model.vision_tower.") for name in names) == 355
    assert "model.language_model.layers.0.router.proj.weight" in names
    assert "model.language_model.layers.29.experts.1.down_proj.input_global_scale" in names
    assert miniature(GEMMA).revisions[0].date >= "2026-05-06"
    tokenizer = folders.json(GEMMA, "tokenizer.json")
    special = {token["id"] for token in tokenizer["added_tokens"]}
    assert special.isdisjoint(tokenizer["model"]["vocab"].values())


def test_drafters_fit_their_bodies(folders: Folders) -> None:
    bodies = (MTP, QWEN35, GEMMA)
    for name, body in zip(DRAFTERS, bodies, strict=True):
        config = folders.json(name, "config.json")
        text = folders.json(body, "config.json")["text_config"]
        assert config["architectures"] == ["DFlashDraftModel"]
        assert config["num_hidden_layers"] == len(config["layer_types"]) == 5
        assert config["num_target_layers"] == text["num_hidden_layers"]
        assert config["vocab_size"] == text["vocab_size"]
        assert max(config["dflash_config"]["target_layer_ids"]) < text["num_hidden_layers"]
        width = len(config["dflash_config"]["target_layer_ids"]) * text["hidden_size"]
        assert shapes(folders(name))["fc.weight"][1] == width
    gemma = folders.json(DRAFTERS[2], "config.json")
    assert gemma["layer_types"].count("sliding_attention") == 4
    assert (gemma["sliding_window"], gemma["block_size"]) == (2048, 16)
    qwen35 = folders.json(DRAFTERS[1], "config.json")
    assert qwen35["dflash_config"]["target_layer_ids"] == [1, 16, 31, 46, 61]


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


LIMITS = (
    "--max-model-len", "65536", "--max-num-seqs", "16", "--max-num-batched-tokens", "32768",
    "--gpu-memory-utilization", "0.85", "--attention-backend", "flash_attn",
)  # fmt: skip


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


@pytest.mark.parametrize(
    ("body", "drafter", "words"),
    [
        (COMPRESSED, DRAFTERS[0], ("--quantization", "compressed-tensors", *LIMITS)),
        (QWEN35, DRAFTERS[1], LIMITS),
    ],
)
def test_pairs_without_a_command_start(
    body: str, drafter: str, words: tuple[str, ...], folders: Folders
) -> None:
    config = {"method": "dflash", "model": str(folders(drafter)), "num_speculative_tokens": 15}
    settings = settings_of([str(folders(body)), *words, "--speculative-config", json.dumps(config)])
    assert settings.model.quant_method == BODIES[body]
    assert loaded(settings.model) > loaded(settings.drafter) > MIB


def xs_with_mtp(folders: Folders) -> Settings:
    return settings_of(words_of("27B card, recipe B", folders(XS), None))


def test_an_mtp_head_is_loaded_from_the_body(
    folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = xs_with_mtp(folders)
    assert "method `qwen3_5_mtp` is deprecated and replaced with mtp." in capsys.readouterr().out
    assert settings.kv_cache_dtype == "nvfp4"
    assert settings.speculation is not None
    assert settings.speculation.method == "mtp"
    assert settings.drafter == settings.model
    assert loaded(settings.drafter) == loaded(settings.model)


def test_mtp_needs_no_slots_and_a_family_that_has_it(folders: Folders) -> None:
    config = {"method": "mtp", "num_speculative_tokens": 15}
    words = ["--speculative-config", json.dumps(config)]
    assert settings_of([str(folders(XS)), *words]).speculation is not None
    with pytest.raises(Refusal) as refusal:
        settings_of([str(folders(GEMMA)), *words])
    assert refusal.value.kind == "NotImplementedError"
    assert refusal.value.text == "Unsupported speculative method: 'mtp'"


@pytest.mark.parametrize("name", BODIES)
def test_the_other_quantization_is_refused(name: str, folders: Folders) -> None:
    (other,) = {"modelopt", "compressed-tensors"} - {BODIES[name]}
    with pytest.raises(Refusal) as refusal:
        settings_of([str(folders(name)), "--quantization", other])
    assert f"({BODIES[name]}) does not match the quantization" in refusal.value.text
    assert settings_of([str(folders(name)), "--quantization", BODIES[name]]).drafter is None
    assert open_model(str(folders(name))).max_position_embeddings == 262_144


def test_weights_of_a_grafted_head_are_missed(tmp_path: Path, folders: Folders) -> None:
    for path in folders(XS).iterdir():
        if path.name != qwen27b_bodies.MTP_FILE:
            (tmp_path / path.name).symlink_to(path)
    with pytest.raises(Refusal, match=r"not initialized from checkpoint: \{'mtp\.fc\.weight'"):
        loaded(open_model(str(tmp_path)))
