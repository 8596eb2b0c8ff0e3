"""A recipe of another project after its format's module has read it, and findings on its keys."""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import PurePosixPath
from typing import Any

from sparkwright.engines import DEFAULT, engine
from sparkwright.engines.allowlist import LeftOut
from sparkwright.engines.engine import Engine
from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.resolve.recipe_registry import Snapshot
from sparkwright.text.shipped_yaml import beside

#: Suffixes of files that may be recipes.
SUFFIXES = (".yaml", ".yml")
_SECRETS = re.compile(r"(?i)(^|_)(token|password|passwd|secret|key|credentials?)$")
LEFT_OUT, CHANGED, REFUSED = "import-left-out", "import-changed", "import-refused"


#: The tables of texts.yaml: remarks, and keys that are not carried over, with the reason.
texts = cache(partial(beside, __file__, "texts.yaml"))


class Unfit(Exception):
    """This recipe can't be imported; the text has the reason, and the remedy."""

    def __init__(self, key: str, observed: str, reason: str, remedy: str = "") -> None:
        self.key, self.observed, self.reason, self.remedy = key, observed, reason, remedy
        super().__init__(f"{observed}: {reason}")

    def finding(self, source: str) -> Finding:
        """Return this error as a finding of a file."""
        where = Subject(file=source, key=self.key or None)
        texts = {"reason": self.reason, "remedy": self.remedy}
        return Finding(REFUSED, Severity.ERROR, where, self.observed, **texts)


@dataclass
class Remarks:
    """Findings of one recipe, in order.

    Attributes:
        source: the recipe's file, as messages name it.
        engine: name of the recipe's engine.
    """

    source: str
    engine: str = DEFAULT
    findings: list[Finding] = field(default_factory=list)

    def note(self, remark: str, key: str, observed: str, **facts: Any) -> None:
        """Add a remark of texts.yaml; its reason and remedy may name facts."""
        text = texts()["remarks"][remark]
        reason, remedy = text["reason"].format(**facts), text.get("remedy", "").format(**facts)
        name, needed = f"import-{text['kind']}", text.get("needed", False)
        self._add(name, key, observed, needed=needed, reason=reason, remedy=remedy)

    def listed(self, kind: str, name: str, value: Any, allowed: Collection[str]) -> Any:
        """Return a value without the parts that are not on the engine's list, with a note on
        each; ``...`` if nothing is left.
        """
        left_out: list[LeftOut] = []
        kept = engine(self.engine).allowlist.kept(kind, name, value, allowed, left_out)
        for key, part, reason in left_out:
            text = f"{key}{'=' if kind == 'env' else ': '}{' '.join(str(part).split())[:200]}"
            shown = key if _SECRETS.search(key) else text
            self.note("not-listed", f"{kind}.{key}", shown, name=key, reason=reason)
        return kept

    def left_out(self, key: str, observed: str, reason: str) -> None:
        """Add a note on a key that is not carried over, with the reason from another table."""
        self._add(LEFT_OUT, key, observed, needed=False, reason=reason)

    def _add(self, name: str, key: str, observed: str, *, needed: bool, **reasons: str) -> None:
        """Add a finding: an error if the recipe lost a part that it needs."""
        where = Subject(file=self.source, key=key or None)
        severity = Severity.ERROR if needed or key in texts()["needed"] else Severity.WARNING
        finding = Finding(name, severity, where, observed, **reasons)
        if finding not in self.findings:
            self.findings.append(finding)


@dataclass(frozen=True)
class Options:
    """The user's options for importing a recipe.

    Attributes:
        gpu: GPU of the import, by its name in ``catalog.gpus.GPUS``.
        name: name of the new recipe; None for the recipe's own name.
        engine_version: version of the engine in the recipe's image, if no other source has it.
        image: a reference that replaces the recipe's container.
        variants: selected variants of a recipe with several variants; empty for all variants.
        remote_code: whether ``trust_remote_code`` and mods that bring code are kept.
        allowed: arguments and variables that the site allows in addition to the engine's list.
        cluster: whether a recipe for several GPUs is spread over as many hosts.
        mods: name of a mod -> its files: name -> text, "\\0" for a file that is not text.
    """

    gpu: str = "gb10"
    name: str | None = None
    engine_version: str | None = None
    image: str | None = None
    variants: tuple[str, ...] = ()
    remote_code: bool = False
    allowed: frozenset[str] = frozenset()
    cluster: bool = False
    mods: Callable[[str], Mapping[str, str]] = lambda _: {}


@dataclass(frozen=True)
class Text:
    """A recipe's file.

    Attributes:
        name: the file's path in a folder or repository, without the suffix.
        source: ``repository@commit:path``, or the path of a file.
        date: date of the commit or of the file.
    """

    name: str
    text: str
    source: str
    date: dt.date

    @property
    def names(self) -> tuple[str, str]:
        """The file's name, alone and with its folder's name."""
        folder, _, stem = self.name.rpartition("/")
        return stem, f"{folder.rpartition('/')[2]}-{stem}" if folder else stem


def texts_of_registry(registry: Snapshot, paths: Iterable[str]) -> list[Text]:
    """Recipes among these files of a registry."""
    source, date = registry.source, registry.date()
    return [
        Text(path.removesuffix(suffix), registry.read(path), f"{source}:{path}", date)
        for path in paths
        if (suffix := PurePosixPath(path).suffix) in SUFFIXES
        and not any(part.startswith(".") for part in PurePosixPath(path).parts)
    ]


@dataclass
class Foreign:
    """A foreign recipe, before it is converted.

    Attributes:
        name: name of the new recipe.
        longer_name: name with its folder's name, if another recipe has the short name.
        title: the recipe's description in one line.
        model: the repository that the recipe's key names; the command line takes precedence.
        container: image reference; None for stock vLLM of ``least_vllm`` or newer.
        arguments: arguments of the command line, after ``vllm serve``.
        environment: values as text.
        gpus: least number of GPUs, one in each Spark.
        may_be_one: whether one GPU is enough, although the recipe's defaults name two GPUs.
        vram_gib: the recipe's stated need of memory, over all of the GPUs.
        context: tokens that the model was made for.
        format: the recipe's name of the weights' format.
        notes: further notes for a reader.
        mods: names of scripts that change the recipe's container.
    """

    name: str
    longer_name: str
    title: str
    text: Text
    remarks: Remarks
    model: str
    container: str | None
    arguments: tuple[str, ...]
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
    mods: tuple[str, ...] = ()

    @property
    def engine(self) -> Engine:
        """Engine of the recipe."""
        return engine(self.remarks.engine)
