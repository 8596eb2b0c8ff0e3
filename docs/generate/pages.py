"""Every generated page by its path in a checkout."""

from pathlib import Path

from docs.generate import (
    catalog,
    catalog_yaml,
    checks,
    commands,
    deviations,
    json_documents,
    operations,
    settings,
    speeds,
)
from sparkwright.catalog import load_catalog
from sparkwright.config.places import CATALOG


def pages(root: Path) -> dict[str, str]:
    """Path below the root -> text. The README is written by hand but for its table of speeds."""
    shipped = load_catalog([CATALOG])
    readme = (root / "README.md").read_text(encoding="utf-8")
    return {
        "catalog/DEVIATIONS.md": deviations.page(shipped, root / "docs/deviations.yaml"),
        "README.md": speeds.inserted(readme, shipped),
        "docs/catalog.md": catalog.page(shipped, root / "docs/not-ours.yaml"),
        "docs/catalog-yaml.md": catalog_yaml.page(root / "docs/examples"),
        "docs/commands.md": commands.page(),
        "docs/diagnoses.md": checks.diagnoses(shipped),
        "docs/json.md": json_documents.page(),
        "docs/operations.md": operations.page(),
        "docs/rules.md": checks.rules(shipped, root / "docs/known-issues.yaml"),
        "docs/settings.md": settings.page(),
    }
