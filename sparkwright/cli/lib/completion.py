"""Shell completion of names from the site's files and the catalog.

Completion writes nothing, and queries no host, registry or hub, since the shell waits for the
answer. A faulty file yields no completions and no error message, which the shell would show.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import wraps
from pathlib import Path

import click

from sparkwright.config import inventory, places
from sparkwright.config.targets import services_of

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _completing(names: Callable[[click.Context], Iterable[str]]) -> Complete:
    """Complete the typed text with names that begin with this text."""

    @wraps(names)
    def completed(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
        try:
            # The output of an inventory, which is a program, must not become a completion.
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                result = [str(name) for name in names(context)]
        except (Exception, SystemExit, KeyboardInterrupt):
            return []
        # A name with a line break would become two completions.
        return [
            fromkey
            for fromkey in dict.fromkeys(result)
            if fromkey.startswith(begun) and fromkey.isprintable()
        ]

    return completed


@_completing
def hosts(context: click.Context) -> Iterator[str]:
    """Yield the inventory's hosts, then its groups."""
    inputs = _inputs(context)
    yield from (host.name for host in inputs)
    yield from sorted({group for host in inputs for group in host.groups})


@_completing
def services(context: click.Context) -> Iterator[str]:
    """Yield the services in the hosts' settings."""
    for host in _inputs(context):
        yield from services_of(host)


@_completing
def _paths(context: click.Context) -> Iterator[str]:
    """Yield services as HOST/SERVICE, and inventories."""
    yield from (f"{host.name}/{name}" for host in _inputs(context) for name in services_of(host))
    yield from map(str, sorted(Path("inventory").glob("*.py")))


def targets(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Complete hosts, groups and services, or, after a slash, HOST/SERVICE and inventories."""
    names = (_paths,) if "/" in begun else (hosts, services)
    return [name for complete in names for name in complete(context, parameter, begun)]


@_completing
def keys(context: click.Context) -> Iterator[str]:
    """Yield the names of API keys."""
    yield "default"
    for host in _inputs(context):
        yield from host.data.get("keys") or {}


@_completing
def recipes(_: click.Context) -> Iterator[str]:
    """Yield the catalog's recipes."""
    for folder in places.catalogs():
        yield from (path.stem for path in sorted(folder.glob("recipes/*.yaml")))


@_completing
def tags(context: click.Context) -> Iterator[str]:
    """Yield the tags of all images, or, with ``--recipe``, of the recipe's image."""
    from sparkwright.catalog import load_catalog

    catalog = load_catalog(places.catalogs())
    recipe = catalog.recipes.get(context.params.get("recipe") or "")
    for name, image in catalog.images.items():
        if recipe is None or recipe.image == name:
            yield from image.tags


def _inputs(context: click.Context) -> list[inventory.HostInput]:
    arguments = [context.params.get("inventory"), *(context.params.get("names") or ())]
    files = [Path(word) for word in arguments if word and str(word).endswith(".py")]
    return inventory.read_inventory(files[0] if files else inventory.site_inventory())
