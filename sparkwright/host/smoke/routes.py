"""Checks of the basic routes (names, key, chat, completion and stream) and of reasoning, which is
absent when off, separate from the content when on, and within a budget."""

import json
from typing import Any

from sparkwright.host.lib.faults import clip, fail_if, fail_if_only_marks
from sparkwright.host.lib.kinds import KINDS
from sparkwright.host.smoke import check, client

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
#: Routes to check even if a server does not list its routes (--disable-fastapi-docs).
_ALWAYS = (
    ("GET", "/v1/models"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/messages"),
)
#: Tokens per second above any engine's speed for one answer: tokens that arrive faster were held
#: back.
_TOKENS_PER_SECOND = 2500
_QUESTION = "What is 17 * 23? Answer with the number only."
_RIGHT = "391"
_SMALL = 16
"""Tokens, too few for any reasoning."""
_MARKS = ("<think>", "</think>", "<|channel>", "<channel|>")


def names(client: client.DeepClient) -> str:
    """Check that every served name is listed and answers."""
    served = check.models(client)
    if "chat" not in client.request.routes:
        kinds = [kind for kind in KINDS if kind in client.request.routes]
        return "; ".join(
            f"{name}: {', '.join(check.answered(client, kind, name) for kind in kinds)}"
            for name in client.request.served_names
        )
    for name in client.request.served_names:
        answer = client.chat({**client.body("Say hello.", 8), "model": name})
        fail_if(not answer.tokens, "mute", f"{name} is listed, but its answer has no token")
    return served


def key(client: client.DeepClient) -> str:
    """Check that every protected route in the server's list requires the key."""
    listed = client.call("GET", "/openapi.json", key=False)
    paths: dict[str, dict[str, Any]] = listed.json()["paths"] if listed.status == 200 else {}
    named = {(name.upper(), path) for path, methods in paths.items() for name in methods}
    routes = sorted(route for route in {*named, *_ALWAYS} if route[0] in _METHODS)
    guarded = [route for route in routes if route[1].startswith(client.request.guarded)]
    opened = []
    for method, path in guarded:
        # Send an empty object, so that nothing is generated even if the route requires no key.
        body: dict[str, Any] | None = {} if method == "POST" else None
        plain = path.replace("{", "").replace("}", "")
        status = client.call(method, plain, body, key=False).status
        if status != 401:
            opened.append(f"{method} {path} (HTTP {status})")
    shown = f"these routes must answer 401 without the key: {', '.join(opened)}"
    fail_if(opened, "open", shown)
    unguarded = len(routes) - len(guarded)
    rest = f"; {unguarded} routes are open by the engine's design" if unguarded else ""
    return f"{len(guarded)} protected routes answer 401 without the key{rest}"


def chat(client: client.DeepClient) -> str:
    """Check that the model adds two numbers in a complete answer."""
    answer = client.ask(check.QUESTION, client.request.max_tokens)
    text = answer.text or ""
    fail_if("42" not in text, "wrong", f"the answer to 17 + 25 is {clip(text)!r}")
    end = f"(finish_reason {answer.finish} after {answer.tokens} tokens): {clip(text)}"
    endless = f"the answer is right, but does not end by itself {end}"
    fail_if(answer.finish != "stop", "endless", endless)
    miscount = answer.total != answer.prompt_tokens + answer.tokens
    usage = f"usage: {answer.prompt_tokens} + {answer.tokens} is not {answer.total}"
    fail_if(miscount, "miscount", usage)
    return f"{clip(text, 40)}{answer.note}"


def stream(client: client.DeepClient) -> str:
    """Check that tokens arrive while they are generated, one event after the other, with usage at
    the end.
    """
    body = {**client.body(check.FORESEEABLE, 96), "stream": True}
    # Use the whole budget: with few tokens, a fast engine looks like a held-back stream.
    body |= {"stream_options": {"include_usage": True}, "ignore_eos": True}
    texts: list[str] = []
    times: list[float] = []
    usage: dict[str, Any] | None = None
    done = False
    for at, data in client.events("/v1/chat/completions", body):
        if data == "[DONE]":
            done = True
            break
        event = json.loads(data)
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            delta = choice["delta"]
            parts = (delta.get(key) for key in ("content", "reasoning", "reasoning_content"))
            if text := "".join(filter(None, parts)):
                texts.append(text)
                times.append(at)
    fail_if(not done, "cut", f"the stream ends after {len(times)} events without [DONE]")
    fail_if(not times, "empty", "the stream has no text")
    fail_if_only_marks("".join(texts))
    tokens = usage["completion_tokens"] if usage else len(times)
    spread, first = times[-1] - times[0], f"{times[0]:.2f} s"
    # Held-back events arrive late and all at once; a fast engine takes longer after its first
    # event.
    at_once = spread < min(times[0], tokens / _TOKENS_PER_SECOND)
    lump = len(times) < 3 or at_once
    within = f"in {len(times)} events within {1000 * spread:.0f} ms, {first} after the request"
    fail_if(lump, "lump", f"{tokens} tokens arrived at once, {within}")
    lacking = "the stream ends without usage, although include_usage was set"
    fail_if(usage is None, "usage", lacking)
    return f"{tokens} tokens in {len(times)} events over {spread:.2f} s, first at {first}"


def switched_off(client: client.DeepClient) -> str:
    """Check that a few tokens are enough for an answer without reasoning."""
    answer = client.chat(client.body(check.QUESTION, 64, think=False))
    thoughts = answer.reasoning or _marked(answer.text)
    fail_if(
        thoughts, "thinks", f"the model reasons, but enable_thinking is false: {clip(thoughts)}"
    )
    nonsense = f"without reasoning, the answer to 17 + 25 is {clip(answer.text)!r}"
    fail_if("42" not in (answer.text or ""), "wrong", nonsense)
    return f"{answer.tokens} tokens without reasoning"


def switched_on(client: client.DeepClient) -> str:
    """Check that reasoning is separate from the content, and that an exhausted budget is
    reported.
    """
    small = client.chat(client.body(_QUESTION, _SMALL, think=True))
    budget = client.request.thinking_tokens
    answer = client.chat(client.body(_QUESTION, budget, think=True))
    note = ""
    if answer.only_reasoning:
        note = f"; content: null at {budget} tokens, a budget too small for the reasoning"
        # Quadruple the budget, if the context has room for it.
        budget = min(4 * budget, client.context() - answer.prompt_tokens - 16)
        answer = client.chat(client.body(_QUESTION, budget, think=True))
    answer.check_budget(budget)
    leaked, text = _marked(answer.text), clip(answer.text)
    fail_if(leaked, "leaks", f"the reasoning is in the content: {clip(leaked)}")
    thoughtless = f"no reasoning although enable_thinking is true: {text}"
    fail_if(not answer.reasoning, "thoughtless", thoughtless)
    nonsense = f"with reasoning, the answer to 17 * 23 is {text!r}"
    fail_if(_RIGHT not in (answer.text or ""), "wrong", nonsense)
    cut = small.finish == "length"
    unsaid = f"{_SMALL} tokens cut the reasoning, but finish_reason is {small.finish}"
    fail_if(not cut and _RIGHT not in (small.text or ""), "unsaid", unsaid)
    if cut:
        content = "a cut content" if small.text else "content: null"
        note += f"; {_SMALL} tokens return {content} and finish_reason: length, as expected"
    return f"{answer.tokens} tokens within {budget}{note}"


def _marked(text: str | None) -> str | None:
    """Return the text if it contains a model's own marks of reasoning; otherwise None."""
    return text if text and any(mark in text for mark in _MARKS) else None
