"""Read and check the fields of a request, and prepare the tokens of its answer."""

import json
from dataclasses import dataclass, field
from typing import Any

from .errors import bad_request
from .eyes import described, pictures_of
from .faults import Faults
from .generation import Generation
from .recall import proper_name, recalled, tool_said
from .server_settings import Settings
from .text import (
    FAKE,
    answer_to,
    compact,
    instance_of,
    prose,
    seed_of,
    thinking_about,
    tokens_of,
)

_GARBAGE = "!!!!"
_NEVER_THINKS_UNASKED = ("gemma4",)
"""Reasoning parsers of models that think only if `enable_thinking` is true."""


@dataclass
class Plan:
    """A request ready to run: reasoning tokens come first, then content tokens.

    tool: name and JSON arguments of a tool call that replaces the content.
    """

    generation: Generation
    reasoning: int
    tool: tuple[str, str] | None = None
    stop_reason: str | None = None
    echo: str = field(default="")


def plan_chat(body: dict[str, Any], settings: Settings, version: str, faults: Faults) -> Plan:
    """The plan of a chat completion; ApiError for a request that vLLM refuses."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(item, dict) for item in messages):
        raise bad_request("messages: a list of messages is required", "messages")
    texts = [f"{message.get('role', '')}\n{_content(message)}" for message in messages]
    prompt = [token for text in texts for token in ("<|im_start|>", *tokens_of(text), "<|im_end|>")]
    prompt += ["<|im_start|>", "assistant", "\n"]
    asked = [_content(message) for message in messages if message.get("role") == "user"]
    question = asked[-1] if asked else ""
    kwargs = body.get("chat_template_kwargs") or {}
    seed = seed_of(*texts, str(body.get("seed", "")), compact(kwargs))
    pictures = [picture for message in messages for picture in pictures_of(message)]
    output = tool_said(messages)
    tool = None if output else _tool_call(body, question, settings)
    limit = _max_tokens(body, len(prompt), settings, version)
    if faults.garbage or (faults.blind and pictures):
        body = {**body, "ignore_eos": False}  # the marks may have any length
        return _plan(body, prompt, [], tokens_of(_GARBAGE), limit, seed, tool)
    thinks = bool(settings.reasoning_parser) and (
        faults.always_thinks
        or kwargs.get("enable_thinking", settings.reasoning_parser not in _NEVER_THINKS_UNASKED)
    )
    thoughts = thinking_about(question, seed) if thinks else ""
    answer = tool[1] if tool else output
    if tool and faults.no_tools:
        answer, tool = _unparsed(*tool), None
    if answer is None and pictures:
        seen = [described(picture) for picture in pictures]
        answer = "I see a grey cat." if faults.no_sight else " ".join(seen)
    if answer is None:
        expected = "\n".join(texts) if faults.forgets is None else _last(prompt, faults.forgets)
        answer = _answer(body, question, seed, expected, faults)
    if thoughts and faults.leaks_thoughts:
        answer, thoughts = f"<think>\n{thoughts}\n</think>\n\n{answer}", ""
    if faults.never_stops and not (tool or output or pictures or body.get("response_format")):
        body = {**body, "ignore_eos": True}
    return _plan(body, prompt, tokens_of(thoughts), tokens_of(answer), limit, seed, tool)


def _last(prompt: list[str], count: float) -> str:
    return "".join(prompt[-int(count) :])


def _unparsed(name: str, arguments: str) -> str:
    """A call in Qwen3's own syntax, for a tool parser."""
    parts = [
        f"<parameter={key}>\n{value}\n</parameter>" for key, value in json.loads(arguments).items()
    ]
    return "\n".join(["<tool_call>", f"<function={name}>", *parts, "</function>", "</tool_call>"])


def plan_completion(
    body: dict[str, Any], prompt_text: str, settings: Settings, version: str, faults: Faults
) -> Plan:
    """The plan of a text completion of one prompt."""
    prompt = tokens_of(prompt_text)
    seed = seed_of(prompt_text, str(body.get("seed", "")))
    answer = _GARBAGE if faults.garbage else " " + answer_to(prompt_text, seed)
    if faults.no_completions:
        answer = ""
    body = {"max_tokens": 16, **{key: value for key, value in body.items() if value is not None}}
    limit = _max_tokens(body, len(prompt), settings, version)
    plan = _plan(body, prompt, [], tokens_of(answer), limit, seed, None)
    plan.echo = prompt_text if body.get("echo") else ""
    return plan


def completion_prompts(body: dict[str, Any]) -> list[str]:
    """The prompts of a text completion: one text, several texts, or token ids (read as `<id>`)."""
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return [prompt]
    if isinstance(prompt, list) and prompt:
        if all(isinstance(item, int) for item in prompt):
            return [" ".join(f"<{item}>" for item in prompt)]
        if all(isinstance(item, str) for item in prompt):
            return prompt
        if all(isinstance(item, list) for item in prompt):
            return [" ".join(f"<{number}>" for number in item) for item in prompt]
    raise bad_request("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")


def _plan(
    body: dict[str, Any],
    prompt: list[str],
    reasoning: list[str],
    content: list[str],
    limit: int,
    seed: int,
    tool: tuple[str, str] | None,
) -> Plan:
    content, stop_reason = _until_stop(content, body.get("stop"))
    tokens = reasoning + content
    wanted = int(body.get("min_tokens") or 0)
    if body.get("ignore_eos"):
        wanted = limit
    if wanted > len(tokens) and stop_reason is None and tool is None:
        more = tokens_of(" " + prose(seed >> 9, wanted))
        tokens += more[: wanted - len(tokens)]
    # The end-of-text token counts, but has no text.
    tokens.append("")
    cut = len(tokens) > limit or (bool(body.get("ignore_eos")) and len(tokens) >= limit)
    generation = Generation(
        prompt=prompt,
        tokens=tokens[:limit],
        max_tokens=limit,
        seed=seed,
        finish="length" if cut else "stop",
    )
    return Plan(generation, len(reasoning), tool if not cut else None, None if cut else stop_reason)


def _until_stop(content: list[str], stop: Any) -> tuple[list[str], str | None]:
    text = "".join(content)
    for word in [stop] if isinstance(stop, str) else stop or []:
        at = text.find(word)
        if at >= 0:
            return tokens_of(text[:at]), word
    return content, None


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "\n".join(str(part.get("text", f"<{part.get('type')}>")) for part in parts)
    return content if isinstance(content, str) else ""


def _answer(body: dict[str, Any], question: str, seed: int, expected: str, faults: Faults) -> str:
    wanted = body.get("response_format") or {}
    kind = wanted.get("type") if isinstance(wanted, dict) and not faults.ignores_schema else None
    if kind == "json_schema":
        schema = (wanted.get("json_schema") or {}).get("schema")
        if schema is None:
            raise bad_request(
                "When response_format type is 'json_schema', the 'json_schema' field must be "
                "provided.",
                "response_format",
            )
        return compact(instance_of(schema))
    if kind == "json_object":
        return compact({"fake": True, "answer": answer_to(question, seed)})
    return recalled(question, expected) or answer_to(question, seed)


def _tool_call(body: dict[str, Any], question: str, settings: Settings) -> tuple[str, str] | None:
    tools = {
        tool["function"]["name"]: tool["function"]
        for tool in body.get("tools") or []
        if isinstance(tool, dict) and isinstance(tool.get("function"), dict)
    }
    choice = body.get("tool_choice") or ("auto" if tools else "none")
    if not tools or choice == "none":
        return None
    if isinstance(choice, dict):
        name = (choice.get("function") or {}).get("name")
        if name not in tools:
            raise bad_request(
                "The tool specified in `tool_choice` does not match any of the specified `tools`",
                "tool_choice",
            )
    elif choice == "required":
        name = next(iter(tools))
    else:
        if not settings.auto_tools:
            raise bad_request(
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser '
                "to be set",
            )
        # Without a model to decide, a tool is called if the question names it.
        named = [name for name in tools if name in question]
        if not named:
            return None
        name = named[0]
    arguments = instance_of(tools[name].get("parameters") or {"type": "object"}) or {}
    subject = proper_name(question)
    if subject:  # the first text is the call's argument
        free = [key for key, value in arguments.items() if value == FAKE]
        arguments |= dict.fromkeys(free[:1], subject)
    return str(name), compact(arguments)


def _max_tokens(body: dict[str, Any], prompt: int, settings: Settings, version: str) -> int:
    limit = settings.max_model_len
    field_name = (
        "max_tokens" if body.get("max_completion_tokens") is None else ("max_completion_tokens")
    )
    asked = body.get(field_name)
    if asked is not None and (not isinstance(asked, int) or isinstance(asked, bool) or asked < 1):
        raise bad_request(f"{field_name} must be at least 1, got {asked}.", field_name)
    if asked is not None and asked > limit:
        which = "" if version == "0.32.0" else "max_total_tokens="
        raise bad_request(
            f"max_tokens={asked} cannot be greater than max_model_len={which}{limit}. "
            f"Please request fewer output tokens. (parameter=max_tokens, value={asked})",
            "max_tokens",
        )
    wanted = asked or 0
    if prompt + max(1, wanted) > limit:
        raise bad_request(
            f"This model's maximum context length is {limit} tokens. However, you requested "
            f"{wanted} output tokens and your prompt contains at least {prompt} input tokens, "
            f"for a total of at least {prompt + wanted} tokens. Please reduce the length of the "
            "input prompt or the number of requested output tokens. "
            f"(parameter=input_tokens, value={prompt})",
            "input_tokens",
        )
    return asked or limit - prompt
