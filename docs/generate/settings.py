"""Page docs/settings.md: every setting, from the models in ``sparkwright/config/settings.py``."""

from typing import Any

from docs.generate.markdown import GENERATED
from docs.generate.schema import sections
from sparkwright.config.settings import HostSettings

_INTRODUCTION = """\
Settings are Python values in `group_data/all.py` for every host, `group_data/<group>.py` for a
group ([The site](fleet.md#the-site)), the inventory for one host, and `--data key=value` for one
run; later values override earlier values. `sparkwright plan INVENTORY` shows every resolved setting
with its file.

An unknown key is an error. Keys that begin with `my_` are yours; keys that begin with `_` or
`ssh_` are pyinfra's. `--data` needs a Python string's quotes: `--data
'image_tag="2026-07-01-v0.24.0"'`.

The controller's environment: `SPARKWRIGHT_API_KEY` (the fleet's API key), `HF_TOKEN` (gated
models) and `SPARKWRIGHT_RECORD` (file of a run's record instead of `.sparkwright/last-run.json`;
with it, `--dry` writes a record, too).

Numbers are finite, whole numbers have at most 64 bits, and lists and mappings are at most
40 deep."""


def page() -> str:
    """Text of the page."""
    tables = sections(HostSettings, _python).values()
    source = GENERATED.format(source="sparkwright/config/settings.py")
    return "\n\n".join(["# Settings", source, _INTRODUCTION, *tables]) + "\n"


def _python(value: Any) -> str:
    """Format a default; empty for None, for empty values and for defaults with their own table."""
    return f"`{value!r}`" if value not in (None, [], {}) and not isinstance(value, dict) else ""
