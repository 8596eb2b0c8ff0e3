"""A benchmark's result: the measurements of one service, and everything needed to repeat them.

Times are in seconds, rates in tokens/s, and shares between 0 and 1, unlike the catalog's published
tables, which keep the cards' milliseconds. Measures of a result are in ``measures.yaml``: name,
unit, direction, and tolerated spread.
"""

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from sparkwright.catalog import causes, data, measurements
from sparkwright.findings.render import count
from sparkwright.host.lib.gpu import Gpu
from sparkwright.results.page import Moment
from sparkwright.text.shipped_yaml import beside

#: Raise this number when a result's meaning changes so that an older reader would misread it.
SCHEMA = 1
#: Name of a host or service as a single folder of the storage, so that no path leaves the storage.
Folder = Annotated[str, Field(pattern=r"^[^/\\\x00.][^/\\\x00]*$", max_length=200)]

#: Bound beyond any measurement: a larger value is a mistake in the file.
_MOST = 10**9
_Amount = Annotated[float, Field(ge=0, le=_MOST)]
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Positive = Annotated[int, Field(ge=1, le=_MOST)]


class _Stored(BaseModel):
    """Base of the stored records, which are read-only. Keys of a newer version are ignored, so an
    older reader still reads the other keys.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)


class Cell(_Stored):
    """A load and its measures.

    Attributes:
        concurrency: requests at a time.
        prompt_tokens: the context tier, as given to the load generator.
        max_tokens: bound of an answer's length; 0 for a pooling model.
        measures: figures by name (bench/measures.yaml); measures that were not taken are absent.
    """

    category: measurements.Category
    concurrency: _Positive
    prompt_tokens: _Count
    max_tokens: _Count
    requests: _Count
    errors: _Count = 0
    measures: dict[str, _Amount]

    @property
    def title(self) -> str:
        """The load as text: ``coding, 8 requests, 16000 prompt tokens``."""
        requests = count(self.concurrency, "request")
        return f"{self.category}, {requests}, {count(self.prompt_tokens, 'prompt token')}"


class ImageRun(_Stored):
    """The serving image: ``name`` with its tag, ``digest`` as ``sha256:...`` if known."""

    name: str
    digest: str | None = None


class Program(_Stored):
    """A program, its version, and its stored command line, which contains no secret."""

    name: str
    version: str | None = None
    command: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version or ''}".strip()


class Result(_Stored):
    """A run of a benchmark on a service of a host.

    Attributes:
        when: the start; given in any zone, kept in UTC.
        recipe: the catalog's recipe.
        models: repository -> commit.
        release: id of the release that ran.
        engine: the engine that served.
        gpu: clock and power as medians under load, and the highest temperature of the run.
        settings: the engine's arguments that matter to a comparison.
    """

    version: Annotated[int, Field(alias="schema", ge=1, le=SCHEMA)] = SCHEMA
    host: Folder
    service: Folder
    when: Moment
    recipe: str | None = None
    image: ImageRun
    models: dict[str, str]
    release: str | None = None
    engine: Program | None = None
    gpu: Gpu
    settings: dict[str, data.Scalar] = Field(default_factory=dict)
    generator: Program
    cells: tuple[Cell, ...]

    @property
    def tag(self) -> str | None:
        """The image's tag; None for a name without a tag."""
        tag = self.image.name.rpartition(":")[2]
        return None if tag == self.image.name or "/" in tag else tag


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
    one_stream: bool = True
    slow: causes.Symptom
    fine: causes.Symptom | None = None

    @property
    def scale(self) -> float:
        """Factor from the unit of the catalog and of the load generator to the result's unit."""
        return 0.001 if self.unit == "s" else 1


MEASURES = TypeAdapter(tuple[Measure, ...]).validate_python(beside(__file__, "measures.yaml"))


def columns_of(cells: Iterable[Cell]) -> list[Measure]:
    """Measures with a column in a table of these cells."""
    taken = {name for cell in cells for name in cell.measures}
    pools = any(measure.pooling for measure in MEASURES if measure.name in taken)
    return [measure for measure in MEASURES if measure.pooling == pools]
