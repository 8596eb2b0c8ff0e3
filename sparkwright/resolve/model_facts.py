"""Facts about a model from a commit's own small files, for the settings that depend on these facts.

config.json, generation_config.json, tokenizer_config.json and the chat template are untrusted data:
values of an unexpected form count as missing, and their code is not run.
"""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import Field

from sparkwright.catalog.data import Data
from sparkwright.catalog.entries import Task
from sparkwright.catalog.gguf import Gguf
from sparkwright.resolve.kv_cache import MOST, whole

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
Word = Annotated[str, Field(pattern=rf"^{_WORD}$")]
#: Keys of config.json for the longest context, as vLLM reads them; the least value counts.
_CONTEXT = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length",
    "max_seq_length", "seq_len", "max_target_positions",
)  # fmt: skip
#: Tasks of the hub (``pipeline_tag``), except chat -> tasks of the catalog.
_TASKS: dict[object, Task] = {
    "automatic-speech-recognition": "transcription", "text-to-speech": "speech",
    "text-to-image": "image", "text-ranking": "rerank", "feature-extraction": "embedding",
    "sentence-similarity": "embedding",
}  # fmt: skip
#: Kinds of layers that keep a state instead of keys and values.
_STATES = ("linear_attention", "mamba", "mamba2", "recurrent")
#: Keys of configurations that have these layers but do not list them.
_STATE_KEYS = ("full_attention_interval", "hybrid_override_pattern", "mamba_d_state")


class ModelFacts(Data):
    """Facts about a model, from the files of a commit.

    Attributes:
        architecture: the class that serves the model; None if config.json names no class.
        task: kind of requests according to the hub; None for chat.
        model_type: name of the family in transformers and vLLM.
        context: longest context in tokens.
        quantization: ``quant_method``; None for weights that are not quantized.
        dtype: type of weights that are not quantized.
        vision: whether config.json has a vision tower.
        hybrid: whether some layers keep a state instead of keys and values.
        code: classes of Python files that config.json names (``auto_map``).
        chat_template: whether the model has a chat template.
        template: texts of the template by which parsers are chosen.
        sampling: temperature, top_p and top_k of generation_config.json.
        license: license in the model card, as the hub reports it.
        gguf: the header of the model's GGUF file; None for other formats.
    """

    architecture: Word | None = None
    task: Task | None = None
    model_type: Word | None = None
    context: int | None = Field(default=None, gt=0, le=MOST)
    quantization: Word | None = None
    dtype: Word | None = None
    vision: bool = False
    hybrid: bool = False
    code: tuple[Word, ...] = ()
    chat_template: bool = False
    template: tuple[str, ...] = ()
    sampling: dict[str, float] = Field(default_factory=dict)
    license: Word | None = None
    gguf: Gguf | None = None


class ModelRecipe(Data):
    """A recipe of vllm-project/recipes in its registry, without its text for readers.

    Attributes:
        source: ``repository@commit:path``.
        data: the recipe's unchanged keys, which ``recipes.vllm_recipes`` reads.
    """

    source: str
    data: dict[str, Any]


def facts_of(
    config: Mapping[str, Any],
    generation: Mapping[str, Any],
    tokenizer: Mapping[str, Any],
    *,
    marks: Collection[str],
    template: str | None = None,
    hf_quant: bool = False,
    license: object = None,
    task: object = None,
) -> ModelFacts:
    """Read the facts from the files.

    Args:
        marks: texts to search for in the template.
        template: chat_template.jinja, if any; otherwise the template of tokenizer_config.json.
        hf_quant: whether the repository has a hf_quant_config.json, which ModelOpt writes.
        license, task: the hub's information on the model.
    """
    inner = config.get("text_config")
    text: Mapping[str, Any] = inner if isinstance(inner, dict) else config
    template = template or _template(tokenizer.get("chat_template"))
    quantized = config.get("quantization_config") or text.get("quantization_config")
    named = config.get("architectures")
    code = config.get("auto_map")
    layers = text.get("layer_types")
    return ModelFacts(
        architecture=_word(named[0]) if isinstance(named, list) and named else None,
        task=_TASKS.get(task),
        model_type=_word(config.get("model_type")),
        context=_context(text) or _context(config),
        quantization=_method(quantized) or ("modelopt" if hf_quant else None),
        dtype=_word(text.get("dtype") or text.get("torch_dtype") or config.get("torch_dtype")),
        vision=isinstance(config.get("vision_config"), dict),
        hybrid=(isinstance(layers, list) and any(state in layers for state in _STATES))
        or any(key in text for key in _STATE_KEYS),
        code=tuple(sorted(filter(None, map(_word, code)))) if isinstance(code, dict) else (),
        chat_template=bool(template),
        template=tuple(mark for mark in sorted(marks) if mark in template) if template else (),
        sampling=_sampling(generation),
        license=_word(license),
    )


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(_WORD, value) else None


def _method(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    method = value.get("quant_method")
    # "intel/auto-round" is another name of this format.
    return _word(method.rpartition("/")[2].lower()) if isinstance(method, str) else None


def _template(value: object) -> str | None:
    """Return the template, given alone or as ``default`` in a list of named templates."""
    if isinstance(value, list):
        named = [item for item in value if isinstance(item, dict) and item.get("name") == "default"]
        value = named[0].get("template") if named else None
    return value if isinstance(value, str) else None


def _context(data: Mapping[str, Any]) -> int | None:
    return min(filter(None, (whole(data, key) for key in _CONTEXT)), default=None)


def _sampling(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the values that are within the limits for clients' requests."""
    limits = {"temperature": (0.0, 2.0), "top_p": (0.001, 1.0), "top_k": (1.0, 1e6)}
    result = {}
    for key, (low, high) in limits.items():
        value = data.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            result[key] = float(value)
    return result
