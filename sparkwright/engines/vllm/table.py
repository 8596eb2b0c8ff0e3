"""Tables of ``vllm serve`` arguments by version, and of the models that a version serves.

``.ci/vllm_table.py`` makes the tables from the real parser.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sparkwright.engines.tables import Tables

TABLES = Tables(Path(__file__).resolve().parent / "tables")
versions, table, nearest, defaults = TABLES.versions, TABLES.table, TABLES.nearest, TABLES.defaults


@cache
def architectures() -> Mapping[str, set[str]]:
    """Version -> the model classes that it serves; a model's config.json names its class.

    The lists come from vLLM's own registry, read as text from its wheels (``.ci/vllm_table.py``).
    The file has the versions that serve each class.
    """
    result: defaultdict[str, set[str]] = defaultdict(set)
    path = TABLES.folder.with_name("architectures.json")
    for name, listed in json.loads(path.read_text(encoding="utf-8")).items():
        for version in listed.split():
            result[version].add(name)
    return result
