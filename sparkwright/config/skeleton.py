"""A new site: the files that are the user's own, as this repository's root has them."""

import json
import runpy
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkwright.catalog import Catalog
from sparkwright.catalog.gpus import FAMILIES, GPUS, VRAM, largest_for
from sparkwright.config.places import SKELETON
from sparkwright.findings.user_error import Messages, UserError

_MESSAGES = Messages(__file__)
INVENTORY = "inventory/lab.py"
FILES = (
    *(".gitignore", "config.py", "deploy.py", INVENTORY),
    "group_data/all.py",
    *(f"group_data/{family.group}.py" for family in FAMILIES.values()),
)
#: What follows in this repository's .gitignore is about its development.
_DEVELOPMENT = "\n# Development"
_INDENT = "    "


@dataclass(frozen=True)
class NewHost:
    """A host of the new site; ``gpu`` is one of ``catalog.gpus.GPUS``."""

    name: str
    gpu: str


def contents(hosts: Sequence[NewHost], catalog: Catalog) -> dict[str, str]:
    """The site's files by path; without hosts the inventory is the example, to be edited."""
    texts = {path: (SKELETON / path).read_text(encoding="utf-8") for path in FILES}
    texts[".gitignore"] = texts[".gitignore"].partition(_DEVELOPMENT)[0]
    if hosts:
        texts[INVENTORY] = _inventory(texts[INVENTORY], hosts, catalog)
    return texts


def without_recipe(hosts: Iterable[NewHost], catalog: Catalog) -> list[NewHost]:
    """The hosts whose GPU has too little memory for any recipe made for such cards."""
    return [host for host in hosts if host.gpu in VRAM and largest_for(host.gpu, catalog) is None]


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files below a folder, which is made where it is missing: all of them or none.

    Raises:
        UserError: for everything that is in the way, before anything is written; or for what
            could not be written, after the others were taken away again.
    """
    made: list[Path] = []
    try:
        nothing_in_the_way(folder, files)
        for path, text in files.items():
            target = folder / path
            for parent in reversed([target.parent, *target.parent.parents]):
                if not parent.is_dir():
                    parent.mkdir()
                    made.append(parent)
            with target.open("x", encoding="utf-8") as file:
                made.append(target)
                file.write(text)
    except OSError as error:
        for written in reversed(made):
            with suppress(OSError):
                written.rmdir() if written.is_dir() else written.unlink()
        where = str(error.filename or folder)
        raise _MESSAGES.refusal("not-written", where, reason=error.strerror) from None


def nothing_in_the_way(folder: Path, files: Iterable[str]) -> None:
    """Raise UserError for everything that writing these files would overwrite."""
    targets = [folder / path for path in files]
    folders = dict.fromkeys([folder, *(target.parent for target in targets)])
    paths = [path for path in folders if _taken(path) and not path.is_dir()]
    paths += [path for path in targets if _taken(path)]
    if paths:
        raise UserError(_MESSAGES.mistake("in-the-way", str(path)) for path in paths)


def _taken(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _inventory(example: str, hosts: Sequence[NewHost], catalog: Catalog) -> str:
    """The example's explanation, and these hosts in their groups."""
    head = example[: example.index('"""\n', 3)] + '"""\n'
    groups = []
    for group in dict.fromkeys(map(_group, hosts)):
        members = [host for host in hosts if _group(host) == group]
        entries = [_entry(host, group, catalog) for host in members]
        if all(entry.startswith('"') for entry in entries):
            groups.append(f"{group} = [{', '.join(entries)}]\n")
        else:
            lines = "".join(f"{_INDENT}{entry},\n" for entry in entries)
            groups.append(f"{group} = [\n{lines}]\n")
    return "\n".join([head, *groups])


def _group(host: NewHost) -> str:
    return FAMILIES[GPUS[host.gpu]].group


def _entry(host: NewHost, group: str, catalog: Catalog) -> str:
    """A name, or a pair where the card needs another recipe than its group's."""
    name = json.dumps(host.name)
    if host.gpu not in VRAM:
        return name
    values = runpy.run_path(str(SKELETON / "group_data" / f"{group}.py"))
    services: dict[str, dict[str, Any]] = values["services"]
    recipe = largest_for(host.gpu, catalog)
    if recipe is None:
        note = f"# {host.gpu}: no recipe of the catalog fits its {VRAM[host.gpu]:g} GiB."
        return f'{note}\n{_INDENT}({name}, {{"services": {{}}}})'
    if all(service["recipe"] == recipe.name for service in services.values()):
        return name
    own = {key: {**service, "recipe": recipe.name} for key, service in services.items()}
    return f"(\n{_INDENT * 2}{name},\n{_INDENT * 2}{{'services': {own!r}}},\n{_INDENT})"
