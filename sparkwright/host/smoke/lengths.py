"""Checks of long prompts: their start is remembered, and those over the limit are refused."""

from __future__ import annotations

import random

from sparkwright.host.smoke.client import DeepClient, Fault, Skip, clip, error_of, fail_if

_WORDS = ("lamp", "river", "stone", "copper", "garden", "winter", "pepper", "velvet", "anchor")
_PLACES = ("in the hall", "by the window", "under the bridge", "near the harbour", "on the table")


def fits(context: int, tokens: int) -> bool:
    """Whether a context has room for a filler of this size, which gets longer, and an answer."""
    return context >= tokens * 1.2 + 512


def needle(client: DeepClient, tokens: int) -> str:
    """A word from the start of a prompt of more than so many tokens is remembered."""
    if not fits(client.context(), tokens):
        raise Skip(f"a context of {client.context()} tokens has no room for it")
    chance = random.SystemRandom()
    word = f"{chance.choice(_WORDS)}{chance.randrange(100, 1000)}"
    start = f"Remember this: the access word is {word}.\n\n"
    end = "\n\nWhat is the access word that you were told to remember? Answer with that word only."
    answer = client.ask(start + filler(client, tokens) + end, 32)
    asked = answer.prompt_tokens
    fail_if(asked <= tokens, "short", f"the probe has only {asked} tokens")
    lost = f"at {asked} tokens the word from the start, {word}, is lost: {clip(answer.text)!r}"
    fail_if(word not in (answer.text or "").lower(), "forgot", lost)
    return f"{word} remembered across {asked} tokens{answer.note}"


def limit(client: DeepClient) -> str:
    """A prompt over the context is refused at once, with a reason."""
    context = client.context()
    prompt = filler(client, int(context * 1.1) + 64)
    over = f"a prompt over the context of {context} tokens"
    try:
        answer = client.call("POST", "/v1/chat/completions", client.body(prompt, 16))
    except Fault as fault:
        within = f"within {client.seconds:.0f} s: it hangs"
        fail_if(fault.cause == "late", "hang", f"{over} is neither answered nor refused {within}")
        raise
    status, text = answer.status, error_of(answer)
    if status == 200:
        counted = answer.json()["usage"]["prompt_tokens"]
        raise Fault("longer", f"{counted} tokens are answered, but the context is {context}")
    fail_if(status >= 500, "broken", f"{over} breaks it: HTTP {status}: {clip(text)}")
    named = status == 400 and any(part in text.lower() for part in client.request.context_errors)
    unclear = f"refused without naming the context: HTTP {status}: {clip(text)}"
    fail_if(not named, "unclear", unclear)
    return f"HTTP {status}: {clip(text)}"


def filler(client: DeepClient, tokens: int) -> str:
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
