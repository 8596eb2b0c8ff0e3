"""A benchmark's result: the measurements of one service, and everything needed to repeat them.

Times are in seconds, rates in tokens/s, shares 0 to 1: unlike the catalog's published tables,
which keep the cards' milliseconds. Measures of a result are in ``measures.yaml``: name, unit,
direction, and tolerated spread.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from sparkwright.catalog.causes import Symptom
from sparkwright.catalog.data import Scalar
from sparkwright.catalog.measurements import Category
from sparkwright.findings.render import count
from sparkwright.host.lib.gpu import Gpu
from sparkwright.results.page import Moment
from sparkwright.text.shipped_yaml import beside

#: Kind of prompt: the cards' categories, or tokens without sense (the drafters' worst case).
Kind = Category | Literal["random"]
#: Raised when a result's meaning changes so that an older reader would misread it.
SCHEMA = 1
#: A host's or service's name as one folder of the storage: never a path that leads elsewhere.
Folder = Annotated[str, StringConstraints(pattern=r"^[^/\\\x00.][^/\\\x00]*$", max_length=200)]

#: Bounds beyond any measurement: drawn and counted values stay numbers.
_MOST = 10**9
_Amount = Annotated[float, Field(ge=0, le=_MOST)]
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Positive = Annotated[int, Field(ge=1, le=_MOST)]


class _Stored(BaseModel):
    """Read-only. Keys of a newer version are passed over: an older reader still reads the rest."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Cell(_Stored):
    """A load and its measures.

    Attributes:
        concurrency: requests at a time.
        prompt_tokens: the context tier, as given to the load generator.
        max_tokens: bound of an answer's length; 0 of a model that pools.
        sampling_temperature: of the requests; 0 is greedy.
        measures: figures by name (bench/measures.yaml); missing for measures that were not taken.
    """

    category: Kind
    concurrency: _Positive
    prompt_tokens: _Count
    max_tokens: _Count
    sampling_temperature: Annotated[float, Field(ge=0, le=100)] = 0.0
    requests: _Count
    errors: _Count = 0
    measures: dict[str, _Amount]

    @property
    def load(self) -> tuple[Kind, int, int, int, float]:
        """Values that make two cells of different runs comparable."""
        load = self.category, self.concurrency, self.prompt_tokens, self.max_tokens
        return (*load, self.sampling_temperature)

    @property
    def title(self) -> str:
        """The load in words: ``coding, 8 requests, 16000 prompt tokens``."""
        parts = [self.category, count(self.concurrency, "request")]
        parts += [count(self.prompt_tokens, "prompt token")]
        sampled = self.sampling_temperature
        return ", ".join([*parts, f"temperature {sampled:g}"] if sampled else parts)


class ImageRun(_Stored):
    """The serving image: ``name`` with its tag, ``digest`` as ``sha256:...`` if known."""

    name: str
    digest: str | None = None


class Program(_Stored):
    """A program, its version, and its command line without secrets if stored."""

    name: str
    version: str | None = None
    command: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version or ''}".strip()


def _readable(version: int) -> int:
    if version > SCHEMA:
        raise ValueError(f"this version reads results up to schema {SCHEMA}: update sparkwright")
    return version


class Result(_Stored):
    """A run of a benchmark on a service of a host.

    Attributes:
        when: the start; given in any zone, kept in UTC.
        recipe: the catalog's recipe.
        models: repository -> commit.
        release: id of the release that ran.
        engine: the engine that served.
        kernel: Linux's release on the host.
        gpu: clock and power are medians under load, the temperature is the highest of the run.
        settings: the engine's arguments that matter to a comparison.
    """

    version: Annotated[int, Field(alias="schema", ge=1), AfterValidator(_readable)] = SCHEMA
    host: Folder
    service: Folder
    when: Moment
    recipe: str | None = None
    image: ImageRun
    models: dict[str, str]
    release: str | None = None
    engine: Program | None = None
    kernel: str | None = None
    gpu: Gpu
    settings: dict[str, Scalar] = Field(default_factory=dict)
    generator: Program
    cells: tuple[Cell, ...]

    @property
    def tag(self) -> str | None:
        """The image's tag; None for a name without one."""
        tag = self.image.name.rpartition(":")[2]
        return None if tag == self.image.name or "/" in tag else tag

    @property
    def facts(self) -> dict[str, str | None]:
        """Facts that may explain why two runs differ, the first suspect first."""
        return {
            "driver": self.gpu.driver,
            "kernel": self.kernel,
            "image": self.image.digest or self.image.name,
            **({self.engine.name: self.engine.version} if self.engine else {}),
            **{f"model {name}": self.models[name] for name in sorted(self.models)},
            **{f"setting {key}": str(self.settings[key]) for key in sorted(self.settings)},
            "GPU": self.gpu.name,
            "load generator": str(self.generator),
            "release": self.release,
        }


class Measure(BaseModel):
    """A measure of a cell; ``measures.yaml`` explains each key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    title: str
    head: str
    unit: str
    reported: tuple[str, str] = ("", "")
    published: str = ""
    pooling: bool = False
    more_is_better: bool = True
    apart: float
    why: str
    noise: float
    one_stream: bool = True
    slow: Symptom
    fine: Symptom | None = None
    worse: str

    @property
    def scale(self) -> float:
        """Factor from the unit of the catalog and of the load generator to the result's."""
        return 0.001 if self.unit == "s" else 1


MEASURES = TypeAdapter(tuple[Measure, ...]).validate_python(beside(__file__, "measures.yaml"))
#: Of models that pool.
_POOLING = {measure.name for measure in MEASURES if measure.pooling}


def columns_of(cells: Iterable[Cell]) -> list[Measure]:
    """Measures that a table of these cells has columns for."""
    pools = any(not _POOLING.isdisjoint(cell.measures) for cell in cells)
    return [measure for measure in MEASURES if measure.pooling == pools]
