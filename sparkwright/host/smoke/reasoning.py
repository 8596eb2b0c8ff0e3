"""Checks of reasoning: absent when off, apart from the content when on, within a budget."""

from __future__ import annotations

from sparkwright.host.smoke import check
from sparkwright.host.smoke.client import DeepClient, clip, fail_if, fail_if_only_reasoning

_QUESTION = "What is 17 * 23? Answer with the number only."
_RIGHT = "391"
_SMALL = 16
"""Tokens, too few for any reasoning."""
_MARKS = ("<think>", "</think>", "<|channel>", "<channel|>")


def switched_off(client: DeepClient) -> str:
    """Without reasoning, a few tokens are enough for an answer."""
    answer = client.chat(client.body(check.QUESTION, 64, think=False))
    thoughts = answer.reasoning or _marked(answer.text)
    thinks = f"it reasons although enable_thinking is false: {clip(thoughts)}"
    fail_if(thoughts, "thinks", thinks)
    right = "42" in (answer.text or "")
    problems = f"without reasoning, the answer to 17 + 25 is {clip(answer.text)!r}"
    fail_if(not right, "wrong", problems)
    return f"{answer.tokens} tokens, none of them reasoning"


def switched_on(client: DeepClient) -> str:
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
    fail_if_only_reasoning(answer, budget)
    leaked, text = _marked(answer.text), clip(answer.text)
    fail_if(leaked, "leaks", f"its reasoning is in the content: {clip(leaked)}")
    thoughtless = f"no reasoning although enable_thinking is true: {text}"
    fail_if(not answer.reasoning, "thoughtless", thoughtless)
    problems = f"with reasoning, the answer to 17 * 23 is {text!r}"
    fail_if(_RIGHT not in (answer.text or ""), "wrong", problems)
    cut = small.finish == "length"
    unsaid = f"{_SMALL} tokens cut its reasoning, but finish_reason is {small.finish}"
    fail_if(not cut and _RIGHT not in (small.text or ""), "unsaid", unsaid)
    if cut:
        content = "a cut content" if small.text else "content: null"
        note += f"; {_SMALL} tokens return {content} and finish_reason: length, as they should"
    return f"{answer.tokens} tokens within {budget}{note}"


def _marked(text: str | None) -> str | None:
    """A content that has a model's own marks of reasoning in it."""
    return text if text and any(mark in text for mark in _MARKS) else None
