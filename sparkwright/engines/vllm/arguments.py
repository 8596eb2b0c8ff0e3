"""Arguments and variables that a vLLM version accepts: its tables, and variables by image."""

from collections.abc import Iterator
from pathlib import Path

from sparkwright.engines.arguments import Parser
from sparkwright.engines.engine import Configuration
from sparkwright.engines.vllm.data import DATA
from sparkwright.findings.check import Symptom, check

PARSER = Parser("vLLM", Path(__file__).parent, DATA)
_arguments = PARSER.judgement("vllm-arguments")


@check("variable-not-read")
def _not_read(context: Configuration) -> Iterator[Symptom]:
    for name, value in context.environment.items():
        own = PARSER.variables.get(name, {})
        if context.image.name in own.get("not_in", ()) and value not in ("", "0", "off"):
            source = own["source"]
            yield Symptom(name=name, image=context.image, remedy=own["instead"], source=source)
