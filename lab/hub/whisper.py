"""The fake of openai/whisper-large-v3-turbo: a model that transcribes speech.

The configuration has the keys of the real model that a server reads; the weights are a few rows of
two tensors.
"""

from functools import partial

from .miniature import Files, Miniature, Revision
from .weights import bf16, fit, safetensors

REPOSITORY = "openai/whisper-large-v3-turbo"


def _files(size: int) -> Files:
    names = ("model.encoder.conv1.weight", "model.decoder.embed_tokens.weight")
    tensors = fit([bf16(name, 51_866, 1_280, filler=True) for name in names], size)
    return {"model.safetensors": partial(safetensors, tensors)}


MINIATURE = Miniature(
    REPOSITORY, 1 << 20, (Revision("Upload checkpoint", "2024-10-01T07:39:28.000Z", _files),)
)
