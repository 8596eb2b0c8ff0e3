"""An engine that the lab can build: the build of its tree, and the labels of its image."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.serving.tags import Tag


@dataclass(frozen=True)
class Kind:
    """An engine of the lab.

    Attributes:
        name: name of the engine in ``python -m lab.real_engine``, and of its folder in the cache.
        title: title of the image.
        cost: time and disk of a build, for a message.
        make: function that makes the tree at a path, with a second path for scratch files.
        layers: folder of the tree, or "!" and a folder for everything else -> comment.
        sources: files whose content names a build.
        config: configuration of the image, without entry point and labels, which a tag has.
    """

    name: str
    title: str
    cost: str
    tag: Tag
    make: Callable[[Path, Path], None]
    layers: Mapping[str, str]
    sources: tuple[Path, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
