"""YAML that ships beside a module."""

from pathlib import Path
from typing import Any


def read(path: Path) -> Any:
    """Return the data of a YAML file that ships with sparkwright."""
    import yaml  # many runs do not need YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), loader)


def beside(module: str, name: str) -> Any:
    """Return the data of a YAML file beside a module, given the module's ``__file__``."""
    return read(Path(module).with_name(name))
