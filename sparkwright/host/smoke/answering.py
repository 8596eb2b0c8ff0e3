"""The checks of the plain routes: names, key, chat, completion and stream."""

from __future__ import annotations

import json
from typing import Any

from sparkwright.host.smoke import check
from sparkwright.host.smoke.talk import Fault, Talk, clip, nothing_but_marks

#: What vLLM's key guards (GUARDED_PREFIX of 0.24.0; 0.32.0 has /cohere too, and its routes, which
#: the others lack); the rest is open by design.
GUARDED = ("/v1", "/v2", "/inference", "/cohere")
#: Asked for where a server keeps its list to itself (--disable-fastapi-docs).
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_ALWAYS = (
    ("GET", "/v1/models"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/messages"),
)
#: Faster than any engine that writes one answer: tokens that come so were kept back before.
_TOKENS_PER_SECOND = 2500


def names(talk: Talk) -> str:
    """Every served name is listed, and answers."""
    listed = {model["id"] for model in talk.json("GET", "/v1/models")["data"]}
    served = talk.request["served_names"]
    if missing := [name for name in served if name not in listed]:
        raise Fault(
            "unlisted", f"not served: {', '.join(missing)}; served: {', '.join(sorted(listed))}"
        )
    for name in served:
        body = {**talk.body("Say hello.", 8), "model": name}
        if not talk.chat(body).tokens:
            raise Fault("mute", f"{name} is listed, and answers without a token")
    return ", ".join(served)


def key(talk: Talk) -> str:
    """Every guarded route that the server lists wants the key."""
    status, raw = talk.call("GET", "/openapi.json", key=False)
    routes = list(_ALWAYS)
    if status == 200:
        paths: dict[str, dict[str, Any]] = json.loads(raw)["paths"]
        routes = sorted(
            {*routes, *((m.upper(), path) for path, methods in paths.items() for m in methods)}
        )
    routes = [route for route in routes if route[0] in _METHODS]
    guarded = [(method, path) for method, path in routes if path.startswith(GUARDED)]
    unguarded = sorted(path for _, path in routes if not path.startswith(GUARDED))
    opened = []
    for method, path in guarded:
        # An empty object: nothing is generated even where the door is open.
        body: dict[str, Any] | None = {} if method == "POST" else None
        seen, _ = talk.call(method, path.replace("{", "").replace("}", ""), body, key=False)
        if seen != 401:
            opened.append(f"{method} {path} (HTTP {seen})")
    if opened:
        raise Fault("open", f"answers without the key, where it must be 401: {', '.join(opened)}")
    rest = f"; {len(unguarded)} are open, as vLLM leaves them" if unguarded else ""
    return f"{len(guarded)} guarded routes answer 401 without it{rest}"


def chat(talk: Talk) -> str:
    """A sum, in a whole answer that ends by itself."""
    answer = talk.ask(check.QUESTION, talk.request["max_tokens"])
    text = answer.text or ""
    if "42" not in text:
        raise Fault("wrong", f"17 + 25 is answered with {clip(text)!r}")
    if answer.finish != "stop":
        raise Fault(
            "endless",
            f"the answer is right and does not end by itself (finish_reason {answer.finish} "
            f"after {answer.tokens} tokens): {clip(text)}",
        )
    if answer.total != answer.prompt_tokens + answer.tokens:
        raise Fault(
            "miscount", f"usage: {answer.prompt_tokens} + {answer.tokens} is not {answer.total}"
        )
    return f"{clip(text, 40)}{answer.note}"


def completion(talk: Talk) -> str:
    """A text goes on."""
    body = {
        "model": talk.request["served_names"][0],
        "prompt": "one two three four five six",
        "max_tokens": 8,
        "temperature": 0,
    }
    answer = talk.json("POST", "/v1/completions", body)
    text = answer["choices"][0]["text"]
    if not text.strip() or not answer["usage"]["completion_tokens"]:
        raise Fault("empty", "the text is not continued: an empty completion")
    if nothing_but_marks(text):
        raise Fault("marks", f"the answer is nothing but '!': {clip(text)}")
    return clip(text, 40)


def stream(talk: Talk) -> str:
    """Tokens arrive as they are made, one event after the other, with the usage at the end."""
    body = {**talk.body(check.FORESEEABLE, 96), "stream": True}
    # To the budget's end: what comes in a lump is told from what is fast by many tokens.
    body |= {"stream_options": {"include_usage": True}, "ignore_eos": True}
    texts: list[str] = []
    times: list[float] = []
    usage: dict[str, Any] | None = None
    done = False
    for at, data in talk.events("/v1/chat/completions", body):
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
    if not done:
        raise Fault("cut", f"the stream ends after {len(times)} events without [DONE]")
    if not times:
        raise Fault("empty", "the stream has no text")
    if nothing_but_marks("".join(texts)):
        raise Fault("marks", f"the answer is nothing but '!': {clip(''.join(texts))}")
    tokens = usage["completion_tokens"] if usage else len(times)
    spread = times[-1] - times[0]
    if len(times) < 3 or spread < tokens / _TOKENS_PER_SECOND:
        raise Fault(
            "lump",
            f"{tokens} tokens came all at once, in {len(times)} events within "
            f"{1000 * spread:.0f} ms, {times[0]:.2f} s after the question",
        )
    if usage is None:
        raise Fault("usage", "the stream ends without its usage, though include_usage asked for it")
    return f"{tokens} tokens in {len(times)} events over {spread:.2f} s, first at {times[0]:.2f} s"
