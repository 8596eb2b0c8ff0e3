"""Files of a new site, as they are at this repository's root."""

import runpy
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat
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
#: Heading in this repository's .gitignore: the lines below it are for development only.
_DEVELOPMENT = "\n# Development"


@dataclass(frozen=True)
class NewHost:
    """A host of the new site; ``gpu`` is one of ``catalog.gpus.GPUS``, ``user`` is the login
    user.
    """

    name: str
    gpu: str
    user: str = ""


def contents(hosts: Sequence[NewHost], catalog: Catalog) -> dict[str, str]:
    """Return the site's files by path; its inventory has only these hosts."""
    texts = {path: (SKELETON / path).read_text(encoding="utf-8") for path in FILES}
    texts[".gitignore"] = texts[".gitignore"].partition(_DEVELOPMENT)[0]
    texts[INVENTORY] = _inventory(hosts, catalog)
    return texts


def without_recipe(hosts: Iterable[NewHost], catalog: Catalog) -> list[NewHost]:
    """Return the hosts with too little GPU memory for every recipe of their card."""
    return [host for host in hosts if host.gpu in VRAM and largest_for(host.gpu, catalog) is None]


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write all files below a folder, or no file; a missing folder is made.

    Raises:
        UserError: files exist, or a file can't be written; no new file remains. The message names
            the existing files, or the file that can't be written.
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
    """Raise UserError for every file that writing these files would overwrite."""
    targets = [folder / path for path in files]
    folders = dict.fromkeys([folder, *(target.parent for target in targets)])
    paths = [path for path in folders if _taken(path) and not path.is_dir()]
    paths += [path for path in targets if _taken(path)]
    if paths:
        raise UserError(_MESSAGES.mistake("in-the-way", str(path)) for path in paths)


def _taken(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def empty_inventory() -> str:
    """Return the docstring of the example inventory, without its hosts."""
    example = (SKELETON / INVENTORY).read_text(encoding="utf-8")
    return example[: example.index('"""\n', 3)] + '"""\n'


def is_example(inventory: Path) -> bool:
    """Return whether an inventory has the example's hosts, as an earlier `init` wrote them, and no
    deploy of the site ever ran.
    """
    hosts = (SKELETON / INVENTORY).read_text(encoding="utf-8").removeprefix(empty_inventory())
    text = inventory.read_text(encoding="utf-8")
    return text.endswith(f'"""\n{hosts}') and not Path(".sparkwright/last-run.json").exists()


def _inventory(hosts: Sequence[NewHost], catalog: Catalog) -> str:
    """Return the example's docstring and these hosts in their groups.

    A host becomes a pair (name, data) if it has a login user, or a card that needs a recipe other
    than its group's recipe.
    """
    groups: dict[str, list[Any]] = {}
    for host in hosts:
        services = services_of(host, catalog)
        data: dict[str, Any] = {"ssh_user": host.user} if host.user else {}
        data |= {} if services is None else {"services": services}
        groups.setdefault(group_of(host), []).append((host.name, data) if data else host.name)
    lines = [f"{group} = {pformat(members, width=99)}\n" for group, members in groups.items()]
    return "\n".join([empty_inventory(), *lines])


def group_of(host: NewHost) -> str:
    """Return the inventory's group for the GPU's family."""
    return FAMILIES[GPUS[host.gpu]].group


def services_of(host: NewHost, catalog: Catalog) -> dict[str, Any] | None:
    """Return the services of a card that needs a recipe other than its group's recipe; empty if no
    recipe fits the card's memory, None if the group's services fit.
    """
    if host.gpu not in VRAM:
        return None
    values = runpy.run_path(str(SKELETON / "group_data" / f"{group_of(host)}.py"))
    services: dict[str, dict[str, Any]] = values["services"]
    recipe = largest_for(host.gpu, catalog)
    if recipe is None:
        return {}
    if all(service["recipe"] == recipe.name for service in services.values()):
        return None
    return {key: {**service, "recipe": recipe.name} for key, service in services.items()}
