"""Checks of reasoning: absent when off, apart from the content when on, within a budget."""

from __future__ import annotations

from sparkwright.host.smoke import check
from sparkwright.host.smoke.client import Client, Fault, clip

_QUESTION = "What is 17 * 23? Answer with the number only."
_RIGHT = "391"
_SMALL = 16
"""Tokens, too few for any reasoning."""
_MARKS = ("<think>", "</think>", "<|channel>", "<channel|>")


def switched_off(client: Client) -> str:
    """Without reasoning, a few tokens are enough for an answer."""
    answer = client.chat(client.body(check.QUESTION, 64, think=False))
    found = answer.reasoning or _marked(answer.text)
    if found:
        raise Fault("thinks", f"it reasons although enable_thinking is false: {clip(found)}")
    if answer.text is None or "42" not in answer.text:
        raise Fault("wrong", f"without reasoning, the answer to 17 + 25 is {clip(answer.text)!r}")
    return f"{answer.tokens} tokens, none of them reasoning"


def switched_on(client: Client) -> str:
    """With reasoning, it is apart from the content, and a budget that it takes is reported."""
    small = client.chat(client.body(_QUESTION, _SMALL, think=True))
    budget = client.request.thinking_tokens
    answer = client.chat(client.body(_QUESTION, budget, think=True))
    note = ""
    if answer.only_reasoning:
        note = f"; content: null at {budget} tokens, a budget too small for its reasoning"
        # Four times as much, if the context has room for it.
        budget = min(4 * budget, client.context() - answer.prompt_tokens - 16)
        answer = client.chat(client.body(_QUESTION, budget, think=True))
    if answer.only_reasoning:
        raise Fault(
            "budget",
            f"content: null with finish_reason: length: {budget} tokens are too small a budget, "
            f"reasoning took them all: {clip(answer.reasoning)}",
        )
    if leaked := _marked(answer.text):
        raise Fault("leaks", f"its reasoning is in the content: {clip(leaked)}")
    if not answer.reasoning:
        raise Fault(
            "thoughtless", f"no reasoning although enable_thinking is true: {clip(answer.text)}"
        )
    if _RIGHT not in (answer.text or ""):
        raise Fault("wrong", f"with reasoning, the answer to 17 * 23 is {clip(answer.text)!r}")
    if small.finish != "length" and _RIGHT not in (small.text or ""):
        raise Fault(
            "unsaid", f"{_SMALL} tokens cut its reasoning, but finish_reason is {small.finish}"
        )
    cut = "a cut content" if small.text else "content: null"
    if small.finish == "length":
        note += f"; {_SMALL} tokens return {cut} and finish_reason: length, as they should"
    return f"{answer.tokens} tokens within {budget}{note}"


def _marked(text: str | None) -> str | None:
    """A content that has a model's own marks of reasoning in it."""
    return text if text and any(mark in text for mark in _MARKS) else None
