"""The checks of thinking: left out when asked so, kept apart when not, within a fitting budget."""

from __future__ import annotations

from sparkwright.host.smoke import check
from sparkwright.host.smoke.talk import Fault, Talk, clip

_QUESTION = "What is 17 * 23? Answer with the number only."
_RIGHT = "391"
_SMALL = 16
"""Tokens that no thought fits into."""
_MARKS = ("<think>", "</think>", "<|channel>", "<channel|>")


def without(talk: Talk) -> str:
    """Without thoughts, a few tokens are enough for an answer."""
    answer = talk.chat(talk.body(check.QUESTION, 64, think=False))
    thoughts = answer.thoughts or _marked(answer.text)
    if thoughts:
        raise Fault("thinks", f"it thinks though enable_thinking is false: {clip(thoughts)}")
    if answer.text is None or "42" not in answer.text:
        raise Fault("wrong", f"without thoughts, 17 + 25 is answered with {clip(answer.text)!r}")
    return f"{answer.tokens} tokens, none of them thoughts"


def with_thoughts(talk: Talk) -> str:
    """With thoughts they stand apart from the answer, and a budget that ends in them says so."""
    small = talk.chat(talk.body(_QUESTION, _SMALL, think=True))
    budget = talk.request["thinking_tokens"]
    answer = talk.chat(talk.body(_QUESTION, budget, think=True))
    note = ""
    if answer.lost_in_thought:
        note = f"; content: null at {budget} tokens, a budget too small for its thoughts"
        # Four times as much, as far as the context has room for it.
        budget = min(4 * budget, talk.context() - answer.prompt_tokens - 16)
        answer = talk.chat(talk.body(_QUESTION, budget, think=True))
    if answer.lost_in_thought:
        raise Fault(
            "budget",
            f"content: null with finish_reason: length: {budget} tokens are too small a budget, "
            f"thoughts took them all: {clip(answer.thoughts)}",
        )
    if leaked := _marked(answer.text):
        raise Fault("leaks", f"its thoughts stand in the content: {clip(leaked)}")
    if not answer.thoughts:
        raise Fault(
            "thoughtless", f"no thoughts though enable_thinking is true: {clip(answer.text)}"
        )
    if _RIGHT not in (answer.text or ""):
        raise Fault("wrong", f"17 * 23 is answered with {clip(answer.text)!r}, after thoughts")
    if small.finish != "length" and _RIGHT not in (small.text or ""):
        raise Fault(
            "unsaid", f"{_SMALL} tokens cut its thoughts, and finish_reason is {small.finish}"
        )
    cut = "a cut content" if small.text else "content: null"
    if small.finish == "length":
        note += f"; {_SMALL} tokens give {cut} and finish_reason: length, as they should"
    return f"{answer.tokens} tokens within {budget}{note}"


def _marked(text: str | None) -> str | None:
    """A content with a model's own marks of thoughts in it."""
    return text if text and any(mark in text for mark in _MARKS) else None
