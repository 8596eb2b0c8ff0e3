"""Where the library's own data lie: catalog, templates and a new site's files.

The wheel carries them inside the package (pyproject.toml forces them in); a checkout has them
once, at its root. A site's own ``templates/`` and ``catalog/`` go before the library's: see
``sparkwright.config.templates`` and the setting ``catalog_directories``.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
_CARRIED = PACKAGE / "_data"
#: The root of a checkout, or the package's data in an installation.
DATA = _CARRIED if _CARRIED.is_dir() else PACKAGE.parent
CATALOG = DATA / "catalog"
TEMPLATES = DATA / "templates"
