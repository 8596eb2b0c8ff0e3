"""docs/settings.md: every setting, from the models in ``sparkwright/config/settings.py``."""

from typing import Any

from docs.generate.markdown import GENERATED
from docs.generate.schema import sections
from sparkwright.config.settings import HostSettings

_INTRODUCTION = """\
Settings are plain Python values: in `group_data/all.py` for every host, in
`group_data/<group>.py` for a group, in a host's pair in the inventory for one host, and `--data
key=value` for one run. Of these, a later one overrides an earlier one. `sparkwright plan
INVENTORY` shows every resolved setting and the file that it comes from.

    # group_data/sparks.py
    services = {
        "qwen36": {
            "recipe": "qwen36-35b-a3b-heretic-dflash",
            "port": 8000,
            "arguments": {"gpu_memory_utilization": 0.60},    # overrides the recipe's value
        },
    }

An unknown key is an error, so that a typo cannot pass. Keys that begin with `my_` are yours; keys
that begin with `_` or `ssh_` are pyinfra's.

Values for one run need the quotes of a Python string: `--data 'image_tag="2026-07-01-v0.24.0"'`.

Variables of the controller's environment: `SPARKWRIGHT_API_KEY` (the API key of the fleet; else
`api_key_command` prints it, or one is generated in `api_key_file`), `HF_TOKEN` (gated models) and
`SPARKWRIGHT_RECORD` (the file for a run's record instead of `.sparkwright/last-run.json`; with it
a run with `--dry` has one too).

Numbers are finite, whole ones at most 64 bits, and lists and mappings at most 40 deep. A port is
a number from 1 to 65535, without quotes."""


def page() -> str:
    """The whole page."""
    tables = sections(HostSettings, _python).values()
    source = GENERATED.format(what="sparkwright/config/settings.py")
    return "\n\n".join(["# Settings", source, _INTRODUCTION, *tables]) + "\n"


def _python(value: Any) -> str:
    """A default; nothing for None and empty ones, and for defaults with a table of their own."""
    return f"`{value!r}`" if value not in (None, [], {}) and not isinstance(value, dict) else ""
