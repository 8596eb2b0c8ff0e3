"""Sources of recipes: a file, a folder, a repository, or ``@NAME`` of the setting `registries`."""

import datetime as dt
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from sparkwright.config.inventory import HostInput, read_inventory, site_inventory
from sparkwright.config.registries import named_registries
from sparkwright.config.values import mapping
from sparkwright.findings.user_error import Problems, UserError, mistake, refusal, suggest
from sparkwright.recipes.recipe import SUFFIXES, Text, texts_of_registry
from sparkwright.recipes.yaml_mapping import MOST_BYTES
from sparkwright.resolve.lock import read_lock
from sparkwright.resolve.recipe_registry import Snapshot, snapshot

#: Largest number of files of a folder to read.
MOST_FILES = 2000


def tree_of(source: str, inventory: Path | None) -> Snapshot | Path:
    """The files of a source: file, folder, address, or ``@NAME[/RECIPE]``.

    Raises:
        UserError: the source does not exist.
    """
    if source.startswith("@"):
        name, registries = source[1:].partition("/")[0], _pinned(_hosts(inventory))
        if name not in registries:
            remedy = f'set registries = {{"{name}": "https://…"}} in group_data/all.py'
            remedy = suggest(name, list(registries)) if registries else remedy
            raise refusal(source, f"there is no registry {name!r}", remedy)
        return snapshot(*registries[name])
    path = Path(source)
    bare = (path / "HEAD").is_file() and (path / "objects").is_dir()  # a repository
    if bare or "://" in source or "::" in source:
        return snapshot(str(path.resolve()) if bare else source)
    return path


def texts_of(tree: Snapshot | Path) -> list[Text]:
    """The recipes among a source's files."""
    return of_path(tree) if isinstance(tree, Path) else texts_of_registry(tree, tree.files())


@cache
def mod_of(name: str, trees: tuple[Snapshot | Path, ...]) -> dict[str, str]:
    """Files of a mod's folder in the first registry that has the folder; empty if no registry has
    it.
    """
    for tree in (tree for tree in trees if isinstance(tree, Snapshot)):
        plain, paths = set(tree.files()), [path.rpartition("/") for path in tree.files(every=True)]
        folders = [at for at, _, file in paths if f"/{at}/{file}".endswith(f"/{name}/run.sh")]
        if files := {file: f"{at}/{file}" for at, _, file in paths if [at] == folders}:
            return {file: tree.read(at) if at in plain else "\0" for file, at in files.items()}
    return {}


def allowed_names(inventory: Path | None) -> frozenset[str]:
    """Arguments and variables of recipes that the site allows; empty without a site.

    Raises:
        UserError: the named inventory can't be read.
    """
    named = (mapping(host.data.get("allowed_in_recipes")) for host in _site(inventory))
    return frozenset(name for names in named for name in names)


def _site(inventory: Path | None) -> list[HostInput]:
    """The hosts of the inventory; empty without an inventory on the command line or in the site."""
    try:
        return _hosts(inventory)
    except UserError:
        if inventory is not None:
            raise
        return []


def _hosts(inventory: Path | None) -> list[HostInput]:
    return read_inventory(inventory or site_inventory())


def _pinned(hosts: list[HostInput]) -> dict[str, tuple[str, str | None]]:
    """Registries of the site by name: the address, and the commit in the lock."""
    named = named_registries(hosts)
    files = sorted({str(host.data.get("lock_file") or "fleet.lock") for host in hosts if named})
    locks = [lock.registries or {} for file in files if (lock := read_lock(Path(file)))]
    pins = {address: commit for lock in reversed(locks) for address, commit in lock.items()}
    return {name: (at, pins.get(at)) for name, at in named.items()}


def of_path(path: Path) -> list[Text]:
    """The recipe of a file, or every YAML file below a folder. Links below the folder are not
    followed.

    Raises:
        UserError: the path does not exist or can't be read, or the folder has too many files.
    """
    if path.is_file():
        return [_read(path, path.stem)]
    if not path.is_dir():
        remedy = "name a file, a folder, https://HOST/REPOSITORY, or @NAME of `registries`"
        raise refusal(str(path), "this file or folder does not exist", remedy)
    texts: list[Text] = []
    for folder, folders, files in os.walk(path, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in (Path(folder) / name for name in sorted(files)):
            if file.suffix not in SUFFIXES or file.is_symlink() or not file.is_file():
                continue
            if len(texts) == MOST_FILES:
                raise refusal(str(path), f"the folder has over {MOST_FILES} files", "name one file")
            texts.append(_read(file, file.relative_to(path).with_suffix("").as_posix()))
    return texts


def chosen(texts: list[Text], names: Sequence[str]) -> list[Text]:
    """The recipes of these names, which are names of files or ends of paths; all recipes without
    names.

    Raises:
        UserError: recipes are unknown; the error names each recipe.
    """
    if not names:
        return texts
    matching: dict[str, Text] = {}
    problems = Problems()
    for name in names:
        wanted = name.removesuffix(".yaml").removesuffix(".yml").strip("/")
        named = [text for text in texts if f"/{text.name}".endswith(f"/{wanted}")]
        if not named:
            near = suggest(wanted, [text.names[0] for text in texts])
            problems.append(mistake(name, "the source has no recipe of this name", near[:300]))
        matching |= {text.source: text for text in named}
    problems.stop()
    return list(matching.values())


def _read(path: Path, name: str) -> Text:
    """Read the beginning of a file, up to a limit: a longer file is refused later."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
            date = dt.date.fromtimestamp(os.fstat(file.fileno()).st_mtime)
        return Text(name, content.decode("utf-8", "replace"), str(path), date)
    except OSError as error:
        raise refusal(str(path), f"can't be read: {error}", "name another file") from None
