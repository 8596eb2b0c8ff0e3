"""Write every generated page of a checkout: ``python -m docs.generate [ROOT]``."""

import sys
from pathlib import Path

from docs.generate.pages import pages
from sparkwright.config.places import DATA


def main(root: Path) -> None:
    """Write changed files, and print their names."""
    for name, text in pages(root).items():
        path = root / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"{name}: written")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
