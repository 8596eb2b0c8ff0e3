"""Arguments that are settings of the service, so that checks, proxy and clients know them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sparkwright.engines.engine import Misuse

#: Argument -> the setting to write instead.
OWN_ARGUMENTS = {
    "port": "port",
    "host": "bind",
    "served_model_name": "served_names",
    "api_key": "api_key_file (a key on the command line is visible to every user of the host)",
    "config": "its lines under arguments (a file in the container goes past every rule)",
    # A host of a cluster has its rank by its place.
    **dict.fromkeys(("nnodes", "node_rank", "master_addr", "master_port", "headless"), "cluster"),
}
#: The fewest letters that count as an abbreviation, which vLLM's parser takes.
_LETTERS = 3


def own_setting(argument: str) -> str | None:
    """The setting that an argument belongs to, however it is spelt; None for every other one."""
    name = argument.replace("-", "_").strip("_")
    for own, setting in OWN_ARGUMENTS.items():
        if len(name) >= _LETTERS and own.startswith(name):
            return setting
    return None


def misplaced(arguments: Iterable[str]) -> Iterator[Misuse]:
    """Arguments that are settings of the service."""
    for argument in arguments:
        if setting := own_setting(argument):
            yield argument, "this is a setting of its own, not an argument", f"write {setting}"
