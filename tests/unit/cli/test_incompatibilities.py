"""What the cards say does not work, through the command line: a site whose hosts each make one
mistake (tests/cards/incompatibilities.yaml), and what ``sparkwright check`` says of each."""

from typing import Any

from tests.libyaml import safe_load
from tests.unit.builders import ROOT

_FILE = safe_load((ROOT / "tests/cards/incompatibilities.yaml").read_text(encoding="utf-8"))
ROWS: list[dict[str, Any]] = _FILE["rows"]
