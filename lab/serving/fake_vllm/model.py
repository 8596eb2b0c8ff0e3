"""A model directory: its config, and its weights, whose bytes the fake really reads.

A directory with a fault is refused in the words of vLLM, transformers and safetensors.
"""

import json
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .refusal import Refusal, invalid_value

_SAFETENSORS_ERROR = "safetensors._safetensors_rust.SafetensorError"
_MAX_HEADER = 100_000_000
"""Largest header in bytes, as in the safetensors library."""
_DTYPE_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F4": 4,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
}  # fmt: skip
_CHUNK = 8 * 1024 * 1024


@dataclass(frozen=True)
class Model:
    """A model directory. path: path on the command line; config: contents of config.json."""

    path: str
    config: dict[str, Any]

    @property
    def quant_method(self) -> str | None:
        """`quant_method` of the quantization_config, or of the text part's quantization_config."""
        for part in (self.config, self.config.get("text_config", {})):
            quantization = part.get("quantization_config")
            if isinstance(quantization, dict) and quantization.get("quant_method"):
                return str(quantization["quant_method"]).lower()
        return _separate_quant_method(Path(self.path))

    @property
    def max_position_embeddings(self) -> int | None:
        """The context length in the config, or in its text part."""
        for part in (self.config.get("text_config", {}), self.config):
            if isinstance(part.get("max_position_embeddings"), int):
                return int(part["max_position_embeddings"])
        return None


def open_model(path: str) -> Model:
    """The model of a directory; Refusal without a directory or a readable config.json."""
    file = Path(path) / "config.json"
    if not file.is_file():
        raise invalid_value(
            "ModelConfig",
            f"Invalid repository ID or local directory specified: '{path}'.\n"
            "Please verify the following requirements:\n"
            "1. Provide a valid Hugging Face repository ID.\n"
            "2. Specify a local directory that contains a recognized configuration file.\n"
            "   - For Hugging Face models: ensure the presence of a 'config.json'.\n"
            "   - For Mistral models: ensure the presence of a 'params.json'.\n",
        )
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        raise Refusal(
            "OSError",
            f"It looks like the config file at '{file}' is not a valid JSON file.",
        ) from None
    if not isinstance(config, dict) or not ("model_type" in config or "architectures" in config):
        raise invalid_value(
            "ModelConfig",
            f"Unrecognized model in {path}. Should have a `model_type` key in its config.json.",
        )
    return Model(path, config)


def read_weights(model: Model, progress: Callable[[int, int], None]) -> int:
    """Read every shard of a model and check its header; return the bytes read.

    `progress(done, all)` is called before the first shard and after each shard. Raises Refusal for
    missing shards, broken links, Git LFS pointers, and truncated or broken files.
    """
    directory = Path(model.path)
    shards = _shards(directory)
    total = 0
    progress(0, len(shards))
    for done, shard in enumerate(shards, 1):
        total += _read_shard(shard)
        progress(done, len(shards))
    return total


def _shards(directory: Path) -> list[Path]:
    index = directory / "model.safetensors.index.json"
    files = sorted(directory.glob("*.safetensors"))
    if index.is_file():
        try:
            weight_map: dict[str, str] = json.loads(index.read_text("utf-8"))["weight_map"]
        except (ValueError, KeyError, TypeError) as error:
            raise Refusal(
                "json.decoder.JSONDecodeError", f"{index.name}: {error}", engine=True
            ) from None
        named = set(weight_map.values())
        missing = named - {file.name for file in files}
        if missing and files:
            lost = sorted(name for name, shard in weight_map.items() if shard in missing)
            raise Refusal(
                "ValueError",
                "Following weights were not initialized from checkpoint: "
                + "{"
                + ", ".join(repr(name) for name in lost)
                + "}",
                engine=True,
            )
        files = [file for file in files if file.name in named]
    if not files:
        raise Refusal(
            "RuntimeError", f"Cannot find any model weights with `{directory}`", engine=True
        )
    return files


def _read_shard(path: Path) -> int:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            _check_header(file.read(8), file.read, size)
            while file.read(_CHUNK):
                pass
    except FileNotFoundError:
        raise Refusal(
            "FileNotFoundError", f"No such file or directory: {path}", engine=True
        ) from None
    except OSError as error:
        raise Refusal(type(error).__name__, str(error), engine=True) from None
    return size


def _check_header(length: bytes, read: Callable[[int], bytes], size: int) -> None:
    if len(length) < 8:
        raise _broken("header too small")
    header_size = struct.unpack("<Q", length)[0]
    if header_size > _MAX_HEADER:
        # The first eight bytes of a Git LFS pointer, `version `, are a number beyond this limit.
        raise _broken("header too large")
    if header_size + 8 > size:
        raise _broken("invalid header length")
    try:
        header = json.loads(read(header_size))
        tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
        ends = [_tensor_end(entry) for entry in tensors.values()]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise _broken(f"invalid JSON in header: {error}") from None
    if max(ends, default=0) + header_size + 8 != size:
        raise _broken("incomplete metadata, file not fully covered")


def _tensor_end(entry: dict[str, Any]) -> int:
    begin, end = entry["data_offsets"]
    bits = _DTYPE_BITS[entry["dtype"]]
    for length in entry["shape"]:
        bits *= int(length)
    if (end - begin) * 8 != bits:
        raise ValueError("tensor shape does not fit its offsets")
    return int(end)


def _broken(reason: str) -> Refusal:
    return Refusal(_SAFETENSORS_ERROR, f"Error while deserializing header: {reason}", engine=True)


def _separate_quant_method(directory: Path) -> str | None:
    """ModelOpt checkpoints of an older form have their quantization in a separate file."""
    file = directory / "hf_quant_config.json"
    if not file.is_file():
        return None
    try:
        producer = json.loads(file.read_text("utf-8"))["producer"]["name"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(producer).lower()
