"""A fake of AIPerf, which writes the captured report and a record of its start."""

import sys
from pathlib import Path

from tests.unit.builders import ROOT

CAPTURE = ROOT / "tests/fixtures/bench/aiperf-0.13.0"
_PROGRAM = """#!{python}
import json, os, shutil, sys
from pathlib import Path
words = sys.argv[1:]
folder = Path(words[words.index("--artifact-dir") + 1])
config = json.loads(Path(words[words.index("--config") + 1]).read_text())
seen = Path({seen!r})
seen.mkdir(exist_ok=True)
record = {{"words": words, "key": os.environ["OPENAI_API_KEY"], "config": config,
          "dataset": (folder.parent / "dataset.jsonl").read_text().splitlines()}}
(seen / f"{{len(list(seen.iterdir()))}}.json").write_text(json.dumps(record))
if {fails!r}:
    print("╭─ Error ─╮\\n│ no route to host │")
    sys.exit(1)
shutil.copytree({capture!r}, folder)
"""


def fake(folder: Path, *, fails: bool = False) -> Path:
    """A generator that records its starts in ``folder/seen`` and writes the captured cells."""
    program = folder / "aiperf"
    program.write_text(
        _PROGRAM.format(
            python=sys.executable, seen=str(folder / "seen"), fails=fails, capture=str(CAPTURE)
        )
    )
    program.chmod(0o755)
    return program
