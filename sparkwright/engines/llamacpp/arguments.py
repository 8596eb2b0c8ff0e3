"""Arguments that a build of llama-server accepts."""

from pathlib import Path
from typing import Any

from sparkwright.engines.arguments import Parser
from sparkwright.text.shipped_yaml import beside

DATA: dict[str, Any] = beside(__file__, "engine.yaml")
PARSER = Parser("llama.cpp", Path(__file__).parent, DATA)
_arguments = PARSER.judgement("llamacpp-arguments")
