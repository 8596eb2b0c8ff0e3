"""docs/catalog-yaml.md: every key of the catalog's files, from the types in
``sparkwright/catalog``."""

from pathlib import Path
from typing import Any

from docs.generate.markdown import GENERATED
from docs.generate.schema import sections
from sparkwright.catalog.reader import COMMON, KINDS

_INTRODUCTION = """\
One YAML file is one entry. Its `kind` says which of the six types it is, its `name` what others
call it; the file's own name and folder are free. A new image tag, model or recipe needs no code.

Your own entries go into directories that the setting `catalog_directories` names:

    # group_data/all.py
    catalog_directories = ["my-catalog"]

A site's own `catalog/` is read without that. Later directories override the shipped catalog by
kind and name. With `extends: true` an entry changes only the keys that it has: mappings are merged
key by key, everything else is replaced. `extends: NAME` does the same over another entry, under a
new name.

    # my-catalog/fewer-sequences.yaml
    kind: recipe
    name: qwen36-35b-a3b-heretic-dflash
    extends: true
    arguments: {max_num_seqs: 16}

`sparkwright catalog new recipe my-recipe` writes a first one, with every key explained: from
another one with `--from RECIPE`, or from what a repository's own files say with `--model
organisation/name`. Its first line names a JSON Schema, by which editors complete keys and underline
mistakes (`sparkwright catalog schema recipe` prints it).

`sparkwright check --recipe NAME` checks one recipe, of the site's catalog too, `sparkwright catalog
show NAME --directory my-catalog` shows one entry with yours applied, and every command reads the
catalog of its inventory. Unknown keys, missing keys and names that lead nowhere are errors with
file and key. In a catalog of your own `source`, `system` and `date` may be left out.

`source` cites a card by its name and section, or says `this project`; the cards and where they are
published: [the catalog](catalog.md#cards). Of two statements about one tag, the newer one holds."""


def page(examples: Path) -> str:
    """The whole page.

    Args:
        examples: directory with the recipes that it shows.
    """
    parts = ["# The catalog's YAML", GENERATED.format(what="sparkwright/catalog"), _INTRODUCTION]
    parts += ["## A minimal recipe", _example(examples / "minimal.yaml")]
    parts += ["## A complete recipe", _example(examples / "complete.yaml")]
    shown: set[str] = set()
    for kind in KINDS.values():
        for name, text in sections(kind, level=2, common=COMMON, value=_yaml).items():
            if name not in shown:
                parts.append(text)
            shown.add(name)
    return "\n\n".join(parts) + "\n"


def _example(file: Path) -> str:
    return f"```yaml\n{file.read_text(encoding='utf-8')}```"


def _yaml(value: Any) -> str:
    if value is None or value in ([], {}, ()):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if not isinstance(value, list) else f"`[{', '.join(map(str, value))}]`"
