"""Every generated page by its path in a checkout."""

from collections.abc import Callable
from pathlib import Path

from docs import record
from docs.generate import (
    attacks,
    catalog,
    check_tables,
    commands,
    deviations,
    engines,
    gpu_runs,
    json_documents,
    operations,
    real_hosts,
    settings,
)
from docs.generate.markdown import inserted
from sparkwright.catalog import Catalog, load_catalog
from sparkwright.config.places import CATALOG

#: Path of a page below the root -> function that makes its text.
PAGES: dict[str, Callable[[Catalog, Path], str]] = {
    "catalog/DEVIATIONS.md": lambda shipped, root: deviations.page(
        shipped, root / "docs/deviations.yaml"
    ),
    "docs/catalog.md": lambda shipped, _: catalog.page(shipped),
    "docs/checks.md": lambda shipped, _: check_tables.page(shipped),
    "docs/commands.md": lambda *_: commands.page(),
    "docs/json.md": lambda *_: json_documents.page(),
    "docs/json.schema.json": lambda *_: json_documents.schema_file(),
    "docs/settings.md": lambda *_: settings.page(),
}
#: Page written by hand -> name of its generated part, and the function that makes it.
PARTS: dict[str, tuple[str, Callable[[Catalog], str]]] = {
    "docs/lab.md": ("gpu runs", lambda _: gpu_runs.part()),
    "docs/own-models.md": ("engines", engines.part),
    "docs/security.md": ("attacks", lambda _: attacks.part()),
    "docs/troubleshooting.md": ("real hosts", lambda _: real_hosts.part()),
    "docs/writing-a-role.md": ("operations", lambda _: operations.part()),
}


def pages(root: Path) -> dict[str, str]:
    """Path of a page below the root -> its text, with the recorded outputs of commands."""
    shipped = load_catalog([CATALOG])
    made = {name: page(shipped, root) for name, page in PAGES.items()}
    for name, (part, text) in PARTS.items():
        made[name] = inserted((root / name).read_text("utf-8"), part, text(shipped))
    for path in sorted([*root.glob("README.md"), *(root / "docs").glob("*.md")]):
        name = str(path.relative_to(root))
        if record.BEGIN in (page := made.get(name) or path.read_text("utf-8")):
            made[name] = record.inserted(page, root)
    return made
