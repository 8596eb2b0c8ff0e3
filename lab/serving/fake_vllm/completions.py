"""`/v1/completions`, whole and streamed."""

import time
from collections.abc import AsyncGenerator
from typing import Any

from .backend import Backend
from .http_server import Response
from .prompts import Plan, completion_prompts, plan_completion
from .shapes import event, new_id, transfer_params, usage, wants_usage
from .text import compact

_EVENT_STREAM = "text/event-stream; charset=utf-8"


async def respond(backend: Backend, body: dict[str, Any]) -> Response:
    """A text completion of one or more prompts; ApiError for a request that vLLM refuses."""
    model = backend.model_of(body)
    plans = [
        plan_completion(body, prompt, backend.settings, backend.version, backend.faults)
        for prompt in completion_prompts(body)
        for _ in range(int(body.get("n") or 1))
    ]
    if body.get("stream"):
        return Response(200, _stream(backend, body, model, plans), content_type=_EVENT_STREAM)
    for plan in plans:
        async for _ in backend.run(plan.generation):
            pass
    prompt = sum(len(plan.generation.prompt) for plan in plans)
    completion = sum(len(plan.generation.tokens) for plan in plans)
    answer = {
        "id": f"cmpl-{new_id()}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": [_choice(plan, index) for index, plan in enumerate(plans)],
        "service_tier": None,
        "system_fingerprint": backend.settings.fingerprint,
        "usage": usage(prompt, completion, backend.version),
        **transfer_params(backend.version),
    }
    return Response(200, compact(answer).encode())


def _choice(plan: Plan, index: int) -> dict[str, Any]:
    return {
        "index": index,
        "text": plan.echo + "".join(plan.generation.tokens),
        "logprobs": None,
        "finish_reason": plan.generation.finish,
        "stop_reason": plan.stop_reason,
        "token_ids": None,
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "routed_experts": None,
    }


async def _stream(
    backend: Backend, body: dict[str, Any], model: str, plans: list[Plan]
) -> AsyncGenerator[bytes, None]:
    at_end, always = wants_usage(body, backend.settings.force_usage)
    head = {
        "id": f"cmpl-{new_id()}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
    }
    fingerprint = {"system_fingerprint": backend.settings.fingerprint}
    prompt = sum(len(plan.generation.prompt) for plan in plans)
    total = 0
    for index, plan in enumerate(plans):
        done = 0
        tokens = plan.generation.tokens
        async for step in backend.run(plan.generation):
            text = (plan.echo if done == 0 else "") + "".join(tokens[done : done + step])
            done += step
            total += step
            ended = done == len(tokens)
            choice = {
                "index": index,
                "text": text,
                "logprobs": None,
                "finish_reason": plan.generation.finish if ended else None,
                "stop_reason": plan.stop_reason if ended else None,
                "prompt_token_ids": None,
                "token_ids": None,
            }
            counts = usage(prompt, total, backend.version, details=False) if always else None
            chunk = {**head, "choices": [choice], "usage": counts}
            last = ended and index == len(plans) - 1 and not at_end
            yield event(compact({**chunk, **fingerprint} if last else chunk))
    if at_end:
        counts = usage(prompt, total, backend.version, details=False)
        yield event(compact({**head, "choices": [], "usage": counts, **fingerprint}))
    yield event("[DONE]")
