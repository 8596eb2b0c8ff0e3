"""A recipe of another project, as its format's module read it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from sparkwright.imports.remarks import Remarks


@dataclass(frozen=True)
class Options:
    """What the user says beside the recipe.

    Attributes:
        gpu: the GPU that it is imported for, by its name in ``catalog.gpus.GPUS``.
        name: of the new recipe; None for the recipe's own.
        vllm: the version in the recipe's image, where nobody else says it.
        image: a reference that replaces the recipe's container.
        variants: of a recipe that has several; empty for all of them.
        remote_code: whether ``trust_remote_code`` is kept.
        cluster: whether what needs several GPUs is spread over as many hosts.
    """

    gpu: str = "gb10"
    name: str | None = None
    vllm: str | None = None
    image: str | None = None
    variants: tuple[str, ...] = ()
    remote_code: bool = False
    cluster: bool = False


@dataclass(frozen=True)
class Text:
    """A recipe's file.

    Attributes:
        name: its path in its folder or repository, without the suffix.
        source: ``repository@commit:path``, or the path of a file.
        date: of the commit, or of the file.
    """

    name: str
    text: str
    source: str
    date: dt.date

    @property
    def names(self) -> tuple[str, str]:
        """The file's own name, and the same with that of its folder."""
        folder, _, own = self.name.rpartition("/")
        return own, f"{folder.rpartition('/')[2]}-{own}" if folder else own


@dataclass
class Foreign:
    """What a recipe says, before it is ours.

    Attributes:
        name: of the new recipe.
        longer_name: with its folder's, where another recipe has the first one.
        title: one line of its own words.
        model: the repository that its key names; the command line goes before it.
        container: image reference; None for stock vLLM of ``least_vllm`` or newer.
        words: of the command line, after ``vllm serve``.
        environment: as text.
        gpus: that it needs at least, one in each Spark.
        may_be_one: whether one GPU does, although its defaults name two.
        vram_gib: what it says to need, over all of its GPUs.
        context: tokens that the model was made for.
        format: of the weights, as it names it.
        notes: what else a reader should know.
    """

    name: str
    longer_name: str
    title: str
    text: Text
    remarks: Remarks
    model: str
    container: str | None
    words: tuple[str, ...]
    environment: dict[str, str]
    revision: str | None = None
    least_vllm: str | None = None
    gpus: int = 1
    may_be_one: bool = False
    vram_gib: float | None = None
    context: int | None = None
    format: str | None = None
    shm_gib: float | None = None
    memlock: bool = False
    notes: list[str] = field(default_factory=list)
