"""`/v1/chat/completions`, whole and streamed, and `/v1/messages` at its simplest."""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from .backend import Backend
from .errors import bad_request
from .http_server import Response
from .prompts import Plan, plan_chat
from .shapes import event, new_id, transfer_params, usage, wants_usage
from .text import compact

_EVENT_STREAM = "text/event-stream; charset=utf-8"


async def respond(backend: Backend, body: dict[str, Any]) -> Response:
    """A chat completion; ApiError for a request that vLLM refuses."""
    model = backend.model_of(body)
    plan = _plan(backend, body)
    if body.get("stream"):
        pieces = _stream(backend, body, model, plan)
        if backend.faults.no_stream:
            pieces = _held_back(pieces)
        return Response(200, pieces, content_type=_EVENT_STREAM)
    choices = []
    completion = 0
    for index in range(_count(body)):
        plan = plan if index == 0 else _plan(backend, body)
        async for step in backend.run(plan.generation):
            completion += step
        choices.append(_choice(backend, plan, index))
    answer: dict[str, Any] = {
        "id": f"chatcmpl-{new_id()}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": backend.settings.fingerprint,
        "usage": usage(len(plan.generation.prompt), completion, backend.version),
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "prompt_text": None,
        **transfer_params(backend.version),
    }
    return Response(200, compact(answer).encode())


async def respond_as_messages(backend: Backend, body: dict[str, Any]) -> Response:
    """An answer in the form of Anthropic's Messages, without streaming."""
    model = backend.model_of(body)
    plan = _plan(backend, body)
    async for _ in backend.run(plan.generation):
        pass
    _, content = _texts(plan)
    answer = {
        "id": f"chatcmpl-{new_id()}",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": content or ""}],
        "model": model,
        "stop_reason": "max_tokens" if plan.generation.finish == "length" else "end_turn",
        "stop_sequence": plan.stop_reason,
        "usage": {
            "input_tokens": len(plan.generation.prompt),
            "output_tokens": len(plan.generation.tokens),
        },
    }
    return Response(200, compact(answer).encode())


def _plan(backend: Backend, body: dict[str, Any]) -> Plan:
    return plan_chat(body, backend.settings, backend.version, backend.faults)


def _count(body: dict[str, Any]) -> int:
    count = body.get("n") or 1
    if not isinstance(count, int) or not 1 <= count <= 128:
        raise bad_request(f"n must be at least 1, got {count}.", "n")
    return count


def _texts(plan: Plan) -> tuple[str | None, str | None]:
    """Reasoning and content; a part without a token is None."""
    tokens = plan.generation.tokens
    reasoning = "".join(tokens[: plan.reasoning]) or None
    content = "".join(tokens[plan.reasoning :]) or None
    return reasoning, content


def _finish(plan: Plan) -> str:
    return "tool_calls" if plan.tool else plan.generation.finish


def _tool_call(plan: Plan) -> dict[str, Any]:
    assert plan.tool is not None
    name, arguments = plan.tool
    return {
        "id": f"chatcmpl-tool-{new_id()}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _choice(backend: Backend, plan: Plan, index: int) -> dict[str, Any]:
    reasoning, content = _texts(plan)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if plan.tool else content,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
    }
    if plan.tool:
        message["tool_calls"] = [_tool_call(plan)]
    message["reasoning"] = reasoning
    return {
        "index": index,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish(plan),
        "stop_reason": plan.stop_reason,
        "token_ids": None,
        "routed_experts": None,
    }


async def _stream(
    backend: Backend, body: dict[str, Any], model: str, plan: Plan
) -> AsyncGenerator[bytes, None]:
    at_end, always = wants_usage(body, backend.settings.force_usage)
    at_end = at_end and not backend.faults.no_usage
    head = {
        "id": f"chatcmpl-{new_id()}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
    }
    generation = plan.generation
    prompt = len(generation.prompt)

    def chunk(choices: list[dict[str, Any]], done: int, **more: Any) -> bytes:
        counts = {"usage": usage(prompt, done, backend.version, details=False)} if always else {}
        return event(compact({**head, "choices": choices, **more, **counts}))

    start = {"role": "assistant", "content": ""}
    choice = {"index": 0, "delta": start, "logprobs": None, "finish_reason": None}
    yield chunk([choice], 0, prompt_token_ids=None, prompt_text=None)
    done = 0
    async for size, delta in _deltas(backend, plan):
        done += size
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        more: dict[str, Any] = {}
        if done == len(generation.tokens):
            choice |= {"finish_reason": _finish(plan), "stop_reason": plan.stop_reason}
            if not at_end:
                more["system_fingerprint"] = backend.settings.fingerprint
        yield chunk([{**choice, "token_ids": None}], done, **more)
    if at_end:
        last = usage(prompt, done, backend.version, details=False)
        fingerprint = {"system_fingerprint": backend.settings.fingerprint}
        yield event(compact({**head, "choices": [], "usage": last, **fingerprint}))
    yield event("[DONE]")


async def _held_back(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The whole stream in one piece, after its end."""
    yield b"".join([piece async for piece in pieces])


async def _deltas(backend: Backend, plan: Plan) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """Tokens and delta of each chunk; a step that ends the reasoning makes two chunks."""
    tokens = plan.generation.tokens
    done = 0
    async for step in backend.run(plan.generation):
        end = done + step
        middle = min(max(done, plan.reasoning), end)
        if middle > done:
            yield middle - done, {"reasoning": "".join(tokens[done:middle])}
        if end > middle or middle == done:
            text = "".join(tokens[middle:end])
            if not plan.tool:
                yield end - middle, {"content": text}
            elif middle == plan.reasoning:
                call = {"index": 0, **_tool_call(plan)}
                call["function"] = {**call["function"], "arguments": text}
                yield end - middle, {"tool_calls": [call]}
            else:
                call = {"index": 0, "function": {"arguments": text}}
                yield end - middle, {"tool_calls": [call]}
        done = end
