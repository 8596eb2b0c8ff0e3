"""The files below ``templates/``, ready to render."""

from __future__ import annotations

import json
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from sparkwright.config.places import TEMPLATES


@cache
def template(name: str) -> Template:
    """A template by its path below ``templates/``."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["quoted"] = _quoted
    return environment


def _quoted(value: object) -> str:
    """A YAML string (JSON's are) in which Compose's interpolation finds nothing to replace."""
    return json.dumps(str(value), ensure_ascii=False).replace("$", "$$")
