"""The files below ``templates/``, ready to render: a site's own files take precedence over the
library's files.
"""

import json
import math
import os
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, Template
from jinja2.bccache import Bucket

from sparkwright.config.places import template_folders
from sparkwright.documents import caches, text_files
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib import sandbox


def template(name: str) -> Template:
    """Return a template by its path below ``templates/``."""
    folders = tuple(folder.absolute() for folder in template_folders())
    return _environment(folders).get_template(name)


def properties(name: str) -> tuple[str, ...]:
    """Return the unit properties in a template below ``sandboxes/``, one per line."""
    lines = template(f"sandboxes/{name}.j2").render().splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


@cache
def _environment(folders: tuple[Path, ...]) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        bytecode_cache=_Compiled(str(caches.of_user("templates"))),
    )
    environment.filters |= {"quoted": _quoted, "yaml": _yaml}
    environment.globals["sandbox"] = sandbox.lines
    return environment


class _Compiled(FileSystemBytecodeCache):
    """Cache of compiled templates in a folder of the user; compiling takes 25 ms per run.

    The folder is not used if it can't be written, or other users may write to it.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            folder = Path(self.directory).stat()
            if folder.st_uid == os.geteuid() and not folder.st_mode & 0o022:
                super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if caches.WRITTEN.is_set():
            with suppress(OSError, UserError):
                text_files.make_folder(Path(self.directory), 0o700)
                super().dump_bytecode(bucket)


def _quoted(value: object) -> str:
    """Return a YAML string in the form of JSON, escaped against Compose's interpolation."""
    return json.dumps(str(value), ensure_ascii=False).replace("$", "$$")


@cache
def _yaml_dumper() -> Any:
    import yaml  # the import is slow, and few templates need YAML

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')

    Dumper.add_representer(str, quoted)
    return partial(yaml.dump, Dumper=Dumper, default_flow_style=True, sort_keys=False,
                   width=math.inf, allow_unicode=True)  # fmt: skip


def _yaml(value: object) -> str:
    """Return a value as one line of YAML. Text is always in quotes: readers of YAML 1.1 and 1.2
    differ in which bare words are text (``1e3``, ``y``).
    """
    return str(_yaml_dumper()(value)).removesuffix("...\n").rstrip("\n")
