"""Every generated page by its path in a checkout."""

from pathlib import Path

from docs.generate import (
    catalog,
    catalog_yaml,
    checks,
    commands,
    deviations,
    gpu_runs,
    json_documents,
    operations,
    settings,
    speeds,
)
from sparkwright.catalog import load_catalog
from sparkwright.config.places import CATALOG


def pages(root: Path) -> dict[str, str]:
    """Path below the root -> text. README and lab.md are written by hand but for a table."""
    shipped = load_catalog([CATALOG])
    lab = (root / "docs/lab.md").read_text(encoding="utf-8")
    readme = (root / "README.md").read_text(encoding="utf-8")
    return {
        "catalog/DEVIATIONS.md": deviations.page(shipped, root / "docs/deviations.yaml"),
        "README.md": speeds.inserted(readme, shipped),
        "docs/catalog.md": catalog.page(shipped, root / "docs/not-ours.yaml"),
        "docs/catalog-yaml.md": catalog_yaml.page(root / "docs/examples"),
        "docs/commands.md": commands.page(),
        "docs/diagnoses.md": checks.diagnoses(shipped),
        "docs/json.md": json_documents.page(),
        "docs/lab.md": gpu_runs.inserted(lab),
        "docs/operations.md": operations.page(),
        "docs/rules.md": checks.rules(shipped, root / "docs/known-issues.yaml"),
        "docs/settings.md": settings.page(),
    }
