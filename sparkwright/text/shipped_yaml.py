"""YAML that ships beside a module."""

from pathlib import Path
from typing import Any


def read(path: Path) -> Any:
    """Data of a YAML file that ships with sparkwright."""
    import yaml  # many runs do not need YAML

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), loader)


def beside(module: str, name: str) -> Any:
    """The data of a YAML file in the folder of a module, given its ``__file__``."""
    return read(Path(module).with_name(name))
