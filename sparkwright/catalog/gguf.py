"""GGUF files of a repository, and facts of their headers."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from sparkwright.catalog import data

_PATH = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
#: A file of a repository: its path becomes part of directories, commands and keys of the lock.
GGUF_FILE = rf"^{_PATH}(/{_PATH})*\.gguf$"
GgufFile = Annotated[str, StringConstraints(pattern=GGUF_FILE, max_length=200)]
_Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
#: Name of a quantization, which becomes part of a directory's name.
_Quantization = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,19}$")]
_Count = Annotated[int, Field(strict=True, gt=0, le=2**40)]
_Bytes = Annotated[int, Field(strict=True, ge=0, le=2**50)]


def split(model: str) -> tuple[str, str]:
    """Split a reference into the repository and its selected part: a quantization, a file, or
    nothing.
    """
    name, _, quantization = model.partition(":")
    owner, name, *path = name.split("/")
    return f"{owner}/{name}", quantization or "/".join(path)


def _model(name: str) -> str:
    data.repository(split(name)[0])
    return name


#: A Hugging Face repository, or one of its GGUF files: ``org/name:Q4_K_M``, ``org/name/file.gguf``.
ModelName = Annotated[
    str,
    StringConstraints(
        pattern=rf"^{data.REPOSITORY}(:[A-Za-z0-9][A-Za-z0-9_-]{{0,29}}|(/{_PATH})+\.gguf)?$",
        max_length=400,
    ),
    AfterValidator(_model),
]


class Gguf(data.Data):
    """Facts about a model from its GGUF header.

    Attributes:
        file: the file's path in the repository; the first part's path for a split model.
        projector: path of the file for image input; None without this file.
        projector_bytes: size of the projector.
        architecture: llama.cpp's name of the architecture, such as ``qwen3moe``.
        quantization: the name of the file type, such as ``Q4_K_M``; None for a file type without a
            name.
        context: tokens that the model was made for.
        pooling: pooling of a model that gives vectors or scores; None for a model that writes text.
        layer_bytes: bytes of each block's tensors in all parts of the file.
        expert_bytes: bytes of all experts' tensors, which are part of the blocks.
        other_bytes: bytes of the tensors outside of blocks: embeddings and output.
    """

    file: GgufFile
    projector: GgufFile | None = None
    projector_bytes: _Bytes = 0
    architecture: _Word
    quantization: _Quantization | None = None
    context: _Count | None = None
    pooling: Literal["mean", "cls", "last", "rank"] | None = None
    layer_bytes: tuple[_Bytes, ...] = ()
    expert_bytes: _Bytes = 0
    other_bytes: _Bytes = 0

    @property
    def tensor_bytes(self) -> int:
        """Bytes of all tensors, without the projector."""
        return sum(self.layer_bytes) + self.other_bytes
