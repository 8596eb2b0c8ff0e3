"""Render a chat template with a conversation, as an engine does. The module runs in a separate
process.

A template is a foreign program: it may loop forever or allocate gigabytes. This process has limits
of time and memory, reads the template from standard input, and prints a short result.
"""

import json
import resource
import sys
import traceback
from contextlib import suppress
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateSyntaxError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

#: Limits: seconds of CPU time, bytes of memory, and characters of the rendered conversation.
SECONDS, _MEMORY, _CHARACTERS = 5, 512 << 20, 4 << 20


class _Refused(Exception):
    """The template itself refuses the conversation."""


class _Generation(Extension):
    """The block ``generation``, by which transformers marks answers of the assistant."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def _refuse(message: str) -> NoReturn:
    raise _Refused(message)


def _tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _rendered(text: str, values: dict[str, Any]) -> str:
    """Render a template with the environment of transformers (utils/chat_template_utils.py)."""
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"]
    )
    made.filters["tojson"] = _tojson
    made.globals["raise_exception"] = _refuse
    made.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    template, written = made.from_string(text), ""
    for part in template.generate(values) if values["messages"] else ():
        written += part
        if len(written) > _CHARACTERS:
            raise ValueError(f"the template writes more than {_CHARACTERS} characters")
    return written


def _fault(text: str, values: dict[str, Any]) -> tuple[int, str]:
    """Line and reason of the template's mistake; an empty reason if the template renders."""
    messages = values["messages"]
    parts = [{**each, "content": [{"type": "text", "text": each["content"]}]} for each in messages]
    try:
        written = _rendered(text, values)
        if not messages or messages[-1]["content"] in written:
            return 0, ""
        # Some templates take each message as a list of parts, which the engine then provides.
        if messages[-1]["content"] in _rendered(text, {**values, "messages": parts}):
            return 0, ""
        return 0, "the template does not write the user's message"
    except TemplateSyntaxError as error:
        return error.lineno, str(error.message)
    except MemoryError:
        return 0, f"the template takes more than {_MEMORY >> 20} MiB of memory"
    except Exception as error:  # a template may raise any exception
        # A template may refuse system messages: then try the conversation without a system message.
        if isinstance(error, _Refused) and messages and messages[0]["role"] == "system":
            return _fault(text, {**values, "messages": messages[1:]})
        frames = traceback.extract_tb(error.__traceback__)
        lines = [each.lineno or 0 for each in frames if each.filename == "<template>"]
        return (lines or [0])[-1], f"{type(error).__name__.strip('_')}: {error}"


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    with suppress(ValueError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    line, reason = _fault(**json.load(sys.stdin))
    print(json.dumps((line, reason[:500])))
