"""Checks of structured answers: a tool call and its result, and JSON by a schema."""

from __future__ import annotations

import json
from typing import Any

from sparkwright.host.smoke.client import Client, Completion, Fault, clip
from sparkwright.host.smoke.schema import misfits

_TOOL = "get_weather"
_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The city's name, e.g. Paris"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}
_WEATHER = "What is the weather in Oslo now, in celsius? Find out by the tool get_weather."
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "country": {"type": "string"},
        "population": {"type": "integer", "minimum": 1},
        "capital": {"type": "boolean"},
        "climate": {"type": "string", "enum": ["cold", "mild", "hot"]},
    },
    "required": ["city", "country", "population", "capital", "climate"],
    "additionalProperties": False,
}


def tools(client: Client) -> str:
    """The model decides to call a tool, and answers from its result."""
    function = {
        "name": _TOOL,
        "description": "The weather in a city now.",
        "parameters": _PARAMETERS,
    }
    more: dict[str, Any] = {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "auto",
    }
    messages: list[Any] = [{"role": "user", "content": _WEATHER}]
    first = client.ask(messages, 256, **more)
    call = _call(client, first)
    result = {"city": "Oslo", "celsius": 23, "sky": "clear"}
    messages += [
        {"role": "assistant", "content": first.text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)},
    ]
    second = client.ask(messages, 256, **more)
    if second.calls:
        raise Fault("again", "the tool is called again instead of its result being used")
    if "23" not in (second.text or ""):
        raise Fault("unused", f"the tool returned 23 degrees, the answer is {clip(second.text)!r}")
    return f"called {_TOOL}({call['function']['arguments']}), answered from its result{first.note}"


def _call(client: Client, answer: Completion) -> dict[str, Any]:
    """The call, which must be valid for a client."""
    parser = client.request.tool_parser
    if not answer.calls:
        if answer.text and _TOOL in answer.text and any(mark in answer.text for mark in "<{["):
            raise Fault(
                "unparsed",
                f"the call is in the content, where the parser {parser} did not find it: "
                f"{clip(answer.text)}",
            )
        raise Fault("uncalled", f"no tool is called; the answer is {clip(answer.text)!r}")
    call = answer.calls[0]
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        raise Fault(
            "garbled", f"arguments that are not JSON: {clip(call['function']['arguments'])}"
        ) from None
    wrong = misfits(arguments, _PARAMETERS)
    if call["function"]["name"] != _TOOL or wrong or "oslo" not in arguments["city"].lower():
        made = f"{call['function']['name']}({call['function']['arguments']})"
        raise Fault("garbled", f"the call is not what the tool requires: {made} {'; '.join(wrong)}")
    if answer.finish != "tool_calls":
        raise Fault("garbled", f"a call with finish_reason {answer.finish}, not tool_calls")
    return call


def json_schema(client: Client) -> str:
    """A question that does not mention JSON is answered by the schema of the request."""
    schema = {"name": "city", "schema": _SCHEMA, "strict": True}
    form = {"type": "json_schema", "json_schema": schema}
    answer = client.ask("Tell me about Oslo.", 256, response_format=form)
    try:
        value = json.loads(answer.text or "")
    except ValueError:
        if answer.finish == "length":
            raise Fault("endless", f"256 tokens end within the JSON: {clip(answer.text)}") from None
        raise Fault("prose", f"the answer is not JSON: {clip(answer.text)}") from None
    if wrong := misfits(value, _SCHEMA):
        raise Fault("misfit", f"JSON that does not fit the schema: {'; '.join(wrong)}")
    return clip(json.dumps(value))
