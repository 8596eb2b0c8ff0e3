"""Checks of long prompts: their start is remembered, and those over the limit are refused."""

from __future__ import annotations

import random

from sparkwright.host.smoke.client import Client, Fault, Skip, clip, error_of

_WORDS = ("lamp", "river", "stone", "copper", "garden", "winter", "pepper", "velvet", "anchor")
_PLACES = ("in the hall", "by the window", "under the bridge", "near the harbour", "on the table")


def fits(context: int, tokens: int) -> bool:
    """Whether a context has room for a filler of this size, which gets longer, and an answer."""
    return context >= tokens * 1.2 + 512


def after_2k(client: Client) -> str:
    """Beyond 2048 tokens, where the drafters' sliding windows end."""
    return _needle(client, 2048)


def after_16k(client: Client) -> str:
    """Beyond 16384 tokens, where a drafter of before 2026-04-19 crashes."""
    return _needle(client, 16384)


def _needle(client: Client, tokens: int) -> str:
    if not fits(client.context(), tokens):
        raise Skip(f"a context of {client.context()} tokens has no room for it")
    chance = random.SystemRandom()
    word = f"{chance.choice(_WORDS)}{chance.randrange(100, 1000)}"
    start = f"Remember this: the access word is {word}.\n\n"
    end = "\n\nWhat is the access word that you were told to remember? Answer with that word only."
    answer = client.ask(start + filler(client, tokens) + end, 32)
    if answer.prompt_tokens <= tokens:
        raise Fault("short", f"the probe has only {answer.prompt_tokens} tokens")
    if word not in (answer.text or "").lower():
        raise Fault(
            "forgot",
            f"at {answer.prompt_tokens} tokens the word from the start, {word}, is lost: "
            f"{clip(answer.text)!r}",
        )
    return f"{word} remembered across {answer.prompt_tokens} tokens{answer.note}"


def limit(client: Client) -> str:
    """A prompt over the context is refused at once, with a reason."""
    context = client.context()
    prompt = filler(client, int(context * 1.1) + 64)
    try:
        answer = client.call("POST", "/v1/chat/completions", client.body(prompt, 16))
    except Fault as fault:
        if fault.cause == "late":
            raise Fault(
                "hang",
                f"a prompt over the context of {context} tokens is neither answered nor refused "
                f"within {client.seconds:.0f} s: it hangs",
            ) from None
        raise
    status, text = answer.status, error_of(answer)
    if status == 200:
        counted = answer.json()["usage"]["prompt_tokens"]
        raise Fault("longer", f"{counted} tokens are answered, but the context is {context}")
    if status >= 500:
        raise Fault(
            "broken", f"a prompt over the context of {context} tokens breaks it: HTTP {status}: "
            f"{clip(text)}",
        )  # fmt: skip
    if status != 400 or not any(part in text.lower() for part in client.request.context_errors):
        raise Fault("unclear", f"refused without naming the context: HTTP {status}: {clip(text)}")
    return f"HTTP {status}: {clip(text)}"


def filler(client: Client, tokens: int) -> str:
    """Lines of more than so many tokens, counted by the model's own tokenizer."""
    sample = 40
    each = client.count(lines(sample)) / sample
    # A twentieth more: later numbers have more digits, which tokenizers count differently.
    return lines(int(1.05 * tokens / each) + 2)


def lines(count: int) -> str:
    """Lines that differ from each other, without any content."""
    return "\n".join(
        f"Note {number}: the {_WORDS[number % len(_WORDS)]} stays {_PLACES[number % len(_PLACES)]}."
        for number in range(count)
    )
