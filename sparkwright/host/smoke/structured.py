"""Checks of structured answers: a tool call and its result, and JSON that fits a schema."""

import json
from typing import Any

from sparkwright.host.lib.faults import Fault, clip, fail_if
from sparkwright.host.smoke.client import Completion, DeepClient

_TYPES: dict[str, type] = {"string": str, "boolean": bool, "integer": int}


def _schema(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these properties."""
    return {
        "type": "object", "properties": properties, "required": list(properties),
        "additionalProperties": False,
    }  # fmt: skip


_TOOL = "get_weather"
_PARAMETERS = _schema(
    city={"type": "string", "description": "The city's name, e.g. Paris"},
    unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
)
_WEATHER = "What is the weather in Oslo now, in celsius? Find out by the tool get_weather."
_SCHEMA = _schema(
    city={"type": "string"},
    country={"type": "string"},
    population={"type": "integer", "minimum": 1},
    capital={"type": "boolean"},
    climate={"type": "string", "enum": ["cold", "mild", "hot"]},
)


def misfits(value: Any, schema: dict[str, Any]) -> list[str]:
    """Return the parts of a value that do not fit a sparkwright schema, each with its path; empty
    if the value fits.
    """
    if not isinstance(value, dict):
        return [f"$ is {type(value).__name__}, not object"]
    properties = schema["properties"]
    problems = [f"$.{name} is not in the schema" for name in value if name not in properties]
    for name, rule in properties.items():
        part = value.get(name)
        if name not in value:
            problems.append(f"$.{name} is missing")
        elif type(part) is not _TYPES[rule["type"]]:  # in Python a bool is an int, too
            problems.append(f"$.{name} is {type(part).__name__}, not {rule['type']}")
        elif part not in rule.get("enum", [part]):
            problems.append(f"$.{name} is {part!r}; allowed: {rule['enum']}")
        elif "minimum" in rule and part < rule["minimum"]:
            problems.append(f"$.{name} is {part}, below {rule['minimum']}")
    return problems


def tools(client: DeepClient) -> str:
    """Check that the model decides to call a tool, and answers from the tool's result."""
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
    again = "the model calls the tool again and does not use its result"
    fail_if(second.calls, "again", again)
    unused = f"the tool returned 23 degrees, but the answer is {clip(second.text)!r}"
    fail_if("23" not in (second.text or ""), "unused", unused)
    return f"called {_TOOL}({call['function']['arguments']}) and used its result{first.note}"


def _call(client: DeepClient, answer: Completion) -> dict[str, Any]:
    """Return the tool call, which must be valid for a client."""
    if not answer.calls:
        text = answer.text or ""
        unparsed = _TOOL in text and any(mark in text for mark in "<{[")
        parser = f"the parser {client.request.tool_parser} did not find it"
        fail_if(unparsed, "unparsed", f"the call is in the content, where {parser}: {clip(text)}")
        raise Fault("uncalled", f"no tool is called; the answer is {clip(answer.text)!r}")
    call = answer.calls[0]
    name, given = call["function"]["name"], call["function"]["arguments"]
    try:
        arguments = json.loads(given)
    except ValueError:
        raise Fault("garbled", f"arguments that are not JSON: {clip(given)}") from None
    problems = misfits(arguments, _PARAMETERS)
    right = name == _TOOL and not problems and "oslo" in arguments["city"].lower()
    other = f"the call does not fit the tool: {name}({given}) {'; '.join(problems)}"
    fail_if(not right, "garbled", other)
    finish = f"a call with finish_reason {answer.finish}, not tool_calls"
    fail_if(answer.finish != "tool_calls", "garbled", finish)
    return call


def json_schema(client: DeepClient) -> str:
    """Check that a question without the word JSON is answered in the request's schema."""
    schema = {"name": "city", "schema": _SCHEMA, "strict": True}
    form = {"type": "json_schema", "json_schema": schema}
    answer = client.ask("Tell me about Oslo.", 256, response_format=form)
    try:
        value = json.loads(answer.text or "")
    except ValueError:
        cut = f"the limit of 256 tokens cuts the JSON: {clip(answer.text)}"
        fail_if(answer.finish == "length", "endless", cut)
        raise Fault("prose", f"the answer is not JSON: {clip(answer.text)}") from None
    problems = misfits(value, _SCHEMA)
    fail_if(problems, "misfit", f"JSON that does not fit the schema: {'; '.join(problems)}")
    return clip(json.dumps(value))
