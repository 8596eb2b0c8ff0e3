"""Every generated page by its path in a checkout."""

from collections.abc import Callable
from pathlib import Path

from docs import record
from docs.generate import (
    catalog,
    catalog_yaml,
    checks,
    commands,
    deviations,
    engines,
    gpu_runs,
    json_documents,
    operations,
    settings,
    speeds,
)
from sparkwright.catalog import Catalog, load_catalog
from sparkwright.config.places import CATALOG

#: Path below the root -> its text. README and lab.md are written by hand but for a table.
PAGES: dict[str, Callable[[Catalog, Path], str]] = {
    "catalog/DEVIATIONS.md": lambda shipped, root: deviations.page(
        shipped, root / "docs/deviations.yaml"
    ),
    "README.md": lambda shipped, root: speeds.inserted(
        (root / "README.md").read_text("utf-8"), shipped
    ),
    "docs/catalog.md": lambda shipped, root: catalog.page(shipped, root / "docs/not-ours.yaml"),
    "docs/catalog-yaml.md": lambda _, root: catalog_yaml.page(root / "docs/examples"),
    "docs/commands.md": lambda *_: commands.page(),
    "docs/engines.md": lambda shipped, _: engines.page(shipped),
    "docs/diagnoses.md": lambda shipped, _: checks.diagnoses(shipped),
    "docs/json.md": lambda *_: json_documents.page(),
    "docs/lab.md": lambda _, root: gpu_runs.inserted((root / "docs/lab.md").read_text("utf-8")),
    "docs/operations.md": lambda *_: operations.page(),
    "docs/rules.md": lambda shipped, root: checks.rules(shipped, root / "docs/known-issues.yaml"),
    "docs/settings.md": lambda *_: settings.page(),
}


def pages(root: Path) -> dict[str, str]:
    """Path below the root -> text; recorded outputs are in their places on every page."""
    shipped = load_catalog([CATALOG])
    made = {name: page(shipped, root) for name, page in PAGES.items()}
    for path in (root / "README.md", *(root / "docs").glob("*.md")):
        name = str(path.relative_to(root))
        text = made.get(name) or path.read_text("utf-8")
        if name in made or "<!-- output: " in text:
            made[name] = record.inserted(text, root)
    return made
