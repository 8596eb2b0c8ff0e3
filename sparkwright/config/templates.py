"""The files below ``templates/``, ready to render: a site's own go before the library's."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from sparkwright.config.places import template_folders
from sparkwright.host.lib import sandbox


def template(name: str) -> Template:
    """A template by its path below ``templates/``."""
    return _environment(tuple(folder.absolute() for folder in template_folders())).get_template(
        name
    )


@cache
def _environment(folders: tuple[Path, ...]) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["quoted"] = _quoted
    environment.globals["sandbox"] = sandbox.lines
    return environment


def _quoted(value: object) -> str:
    """A YAML string (JSON's are) in which Compose's interpolation finds nothing to replace."""
    return json.dumps(str(value), ensure_ascii=False).replace("$", "$$")
