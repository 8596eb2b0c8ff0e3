"""Fixtures, markers by level (the folder below tests/), and Hypothesis profiles for all tests.

Levels: unit and operations (no host at all), host (programs of hosts, called here), install (the
    wheel), browser, fleet (virtual hosts), engine (the real vLLM; engine/bench: the load
    generator).
"""

import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sparkwright import catalog
from sparkwright.catalog import Catalog, reader
from sparkwright.documents.parsed_yaml import ParsedFiles

_HERE = Path(__file__).parent
_SHIPPED = _HERE.parent / "catalog"
#: Levels whose tests need more than Python, and the marker with which a run skips them.
_MARKERS = {
    "browser": "browser",
    "engine/bench": "bench",
    "engine": "real_engine",
    "fleet": "fleet",
}

# Every run tries the same inputs, and no deadline fails on a busy machine.
settings.register_profile(
    "sparkwright",
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make test-fuzz` tries other inputs each time.
settings.register_profile(
    "fuzz",
    settings.get_profile("sparkwright"),
    max_examples=2000,
    derandomize=False,
    print_blob=True,
)
settings.load_profile("sparkwright")


gc.disable()  # the collection of tests makes no garbage


def pytest_configure() -> None:
    """Give programs that tests start the same environment everywhere.

    Readline, which pdb imports, sets COLUMNS for every program, and Python's own view of the
    environment does not show it. A shell that runs the tests in the background ignores SIGINT.
    """
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
        os.unsetenv(name)
    # No test needs the grammars of formats, which take jsonschema a second to compile.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    _read_the_shipped_catalog_once()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _read_the_shipped_catalog_once() -> None:
    """Read the catalog's hundred files once for all tests: their entries are frozen, and each
    test has its own tables. If a test adds files, all entries are read again.
    """
    whole, load = ParsedFiles.load, reader.load_catalog
    parsed, shipped = cache(partial(whole, ParsedFiles())), cache(partial(load, [_SHIPPED]))
    ParsedFiles.load = lambda self, path: (  # type: ignore[method-assign]
        parsed(path) if path.is_relative_to(_SHIPPED) else whole(self, path)
    )

    def read(directories: Sequence[Path]) -> Catalog:
        if list(directories) != [_SHIPPED]:
            return load(directories)
        tables = vars(shipped())
        return Catalog(**{name: dict(table) for name, table in tables.items()})

    catalog.load_catalog = reader.load_catalog = read


def pytest_collection_finish() -> None:
    """Keep modules and tests out of garbage collection: scanning them takes a sixth of a run."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test by its level."""
    for item in items:
        if marker := _marker(item.path):
            item.add_marker(marker)


@cache
def _marker(file: Path) -> str | None:
    path = file.relative_to(_HERE).as_posix() if file.is_relative_to(_HERE) else ""
    levels = (marker for level, marker in _MARKERS.items() if path.startswith(f"{level}/"))
    return next(levels, None)
