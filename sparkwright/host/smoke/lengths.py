"""The checks of length: the start of a long prompt is known at its end, and there is a limit."""

from __future__ import annotations

import json
import random

from sparkwright.host.smoke.talk import Fault, Skip, Talk, clip, error_of

_WORDS = ("lamp", "river", "stone", "copper", "garden", "winter", "pepper", "velvet", "anchor")
_PLACES = ("in the hall", "by the window", "under the bridge", "near the harbour", "on the table")
#: What an error about the context has to speak of, in the versions' different words.
_TELLS = ("context length", "max_model_len", "maximum model length", "too long", "too many tokens")


def fits(context: int, tokens: int) -> bool:
    """Whether a context has room for a filler of so many tokens, which is longer, and an answer."""
    return context >= tokens * 1.2 + 512


def after_2k(talk: Talk) -> str:
    """Beyond 2048 tokens, where the drafters' sliding windows end."""
    return _needle(talk, 2048)


def after_16k(talk: Talk) -> str:
    """Beyond 16384 tokens, where a drafter of before 2026-04-19 crashes."""
    return _needle(talk, 16384)


def _needle(talk: Talk, tokens: int) -> str:
    if not fits(talk.context(), tokens):
        raise Skip(f"a context of {talk.context()} tokens has no room for it")
    chance = random.SystemRandom()
    word = f"{chance.choice(_WORDS)}{chance.randrange(100, 1000)}"
    start = f"Remember this: the access word is {word}.\n\n"
    end = "\n\nWhat is the access word that you were told to remember? Answer with that word only."
    answer = talk.ask(start + filler(talk, tokens) + end, 32)
    if answer.prompt_tokens <= tokens:
        raise Fault("short", f"the probe has only {answer.prompt_tokens} tokens")
    if word not in (answer.text or "").lower():
        raise Fault(
            "forgot",
            f"at {answer.prompt_tokens} tokens the word from the start, {word}, is lost: "
            f"{clip(answer.text)!r}",
        )
    return f"{word} found again across {answer.prompt_tokens} tokens{answer.note}"


def limit(talk: Talk) -> str:
    """A prompt over the context is refused in words, at once."""
    context = talk.context()
    prompt = filler(talk, int(context * 1.1) + 64)
    try:
        status, raw = talk.call("POST", "/v1/chat/completions", talk.body(prompt, 16))
    except Fault as fault:
        if fault.cause == "late":
            raise Fault(
                "hang",
                f"a prompt over the context of {context} tokens is neither answered nor refused "
                f"within {talk.seconds:.0f} s: it hangs",
            ) from None
        raise
    text = error_of(raw)
    if status == 200:
        counted = json.loads(raw)["usage"]["prompt_tokens"]
        raise Fault("longer", f"{counted} tokens are answered, where {context} are the context")
    if status >= 500:
        raise Fault(
            "broken", f"a prompt over the context of {context} tokens breaks it: HTTP {status}: "
            f"{clip(text)}",
        )  # fmt: skip
    if status != 400 or not any(tell in text.lower() for tell in _TELLS):
        raise Fault(
            "unclear", f"refused in words that do not tell why: HTTP {status}: {clip(text)}"
        )
    return f"HTTP {status}: {clip(text)}"


def filler(talk: Talk, tokens: int) -> str:
    """Lines of more than so many tokens, counted by the model's own tokenizer."""
    sample = 40
    each = talk.count(lines(sample)) / sample
    # A twentieth more: later numbers have more digits, but other tokenizers other habits.
    return lines(int(1.05 * tokens / each) + 2)


def lines(count: int) -> str:
    """Lines that differ from each other and say nothing."""
    return "\n".join(
        f"Note {number}: the {_WORDS[number % len(_WORDS)]} stays {_PLACES[number % len(_PLACES)]}."
        for number in range(count)
    )
