"""Locations of the library's data, and of a site's own data, which takes precedence.

The wheel contains the library's data inside the package (pyproject.toml includes it there); in a
checkout, the data is at the root. The site is the working directory, as for pyinfra: its
``templates/`` and ``catalog/`` take precedence over the library's folders unless the folders are
the same.
"""

from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
_CARRIED = PACKAGE / "_data"
INSTALLED = _CARRIED.is_dir()
#: The root of a checkout, or the package's data in an installation.
DATA = _CARRIED if INSTALLED else PACKAGE.parent
CATALOG = DATA / "catalog"
TEMPLATES = DATA / "templates"
#: Files of a new site; a checkout's root is also a site.
SKELETON = _CARRIED / "site" if INSTALLED else DATA
BENCH_PINS = DATA / "constraints-bench.txt"


def catalogs(more: Iterable[str | Path] = ()) -> list[Path]:
    """Return the library's and the site's catalog, then ``more``, in rising precedence."""
    own, named = _of_site(CATALOG), [Path(folder) for folder in more]
    return [CATALOG, *([own] if own and own not in named else []), *named]


def template_folders(below: str = ".") -> list[Path]:
    """Return the folders to search for templates, the site's folder first."""
    own = _of_site(TEMPLATES)
    return [folder / below for folder in ([own, TEMPLATES] if own else [TEMPLATES])]


def _of_site(library: Path) -> Path | None:
    """Return the site's folder of this name; None if it is missing, or the site is the library."""
    own = Path(library.name)
    return own if own.is_dir() and not own.samefile(library) else None
