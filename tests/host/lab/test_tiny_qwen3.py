"""The pair that a real engine computes: what its weights say, by plain arithmetic."""

from __future__ import annotations

import json
import struct

from lab.hub import tiny_qwen3 as tiny
from lab.hub.weights import Tensor


def numbers(tensor: Tensor) -> list[float]:
    """The tensor's data, read back."""
    assert len(tensor.data) == tensor.size
    pairs = (tensor.data[at : at + 2] for at in range(0, tensor.size, 2))
    return [struct.unpack("<f", b"\0\0" + pair)[0] for pair in pairs]


def rows(tensor: Tensor) -> list[list[float]]:
    flat, width = numbers(tensor), tensor.shape[1]
    return [flat[at : at + width] for at in range(0, len(flat), width)]


def following(token: int) -> int:
    """The likeliest token after this one, where layers add nothing."""
    embedded, head = (rows(tensor) for tensor in tiny.embeddings())
    logits = [sum(a * b for a, b in zip(embedded[token], row, strict=True)) for row in head]
    best = max(range(tiny.VOCABULARY), key=logits.__getitem__)
    assert sorted(logits)[-2] < logits[best]
    return best


def test_each_word_leads_to_the_next_and_the_last_to_itself() -> None:
    words = [tiny.FIRST_WORD + number for number in range(len(tiny.WORDS))]
    assert [following(word) for word in words] == [*words[1:], words[-1]]
    assert following(ord("x")) == words[0]
    assert following(tiny.SPECIAL_TOKENS["</think>"]) == words[0]


def test_a_mask_is_drafted_as_the_last_word() -> None:
    assert following(tiny.MASK) == tiny.FIRST_WORD + len(tiny.WORDS) - 1


def test_only_the_ends_of_attention_and_mlp_are_zero() -> None:
    for tensor in (*tiny.body_tensors(), *tiny.drafter_tensors()):
        ends = tensor.name.endswith(("o_proj.weight", "down_proj.weight"))
        assert any(numbers(tensor)) != ends, tensor.name


def test_words_are_tokens_of_the_tokenizer() -> None:
    files = tiny.MINIATURES[0].revisions[0].files(0)
    text = files["tokenizer.json"]
    assert isinstance(text, bytes)
    content = json.loads(text)
    vocabulary = content["model"]["vocab"]
    for number, word in enumerate(tiny.WORDS):
        assert vocabulary[word.replace(" ", "Ġ")] == tiny.FIRST_WORD + number
    added = {token["content"]: token["id"] for token in content["added_tokens"]}
    assert added == tiny.SPECIAL_TOKENS
    used = sorted((*vocabulary.values(), *added.values()))
    assert used == list(range(len(used)))
    assert used[-1] < tiny.VOCABULARY
