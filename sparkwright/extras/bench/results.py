"""A benchmark's result: what was measured on one service, and everything needed to do it again.

Times are in seconds, rates in tokens/s, shares 0 to 1: unlike the catalog's published tables,
which keep the cards' milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
)

from sparkwright.catalog.data import Scalar
from sparkwright.catalog.measurements import Category
from sparkwright.results.page import Moment

#: Kind of prompt: the cards' categories, or tokens without sense (the drafters' worst case).
Kind = Category | Literal["random"]

#: Raised when a result's meaning changes so that an older reader would misread it.
SCHEMA = 1

#: A host's or service's name as one folder of the storage: never a path that leads elsewhere.
Folder = Annotated[str, StringConstraints(pattern=r"^[^/\\\x00.][^/\\\x00]*$", max_length=200)]


#: Bounds beyond anything that can be measured: what is drawn and counted stays a number.
_MOST = 10**9
_Seconds = Annotated[float, Field(ge=0, le=_MOST)]
_Rate = Annotated[float, Field(ge=0, le=_MOST)]
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Least1 = Annotated[int, Field(ge=1, le=_MOST)]
_Share = Annotated[float, Field(ge=0, le=1)]


class _Stored(BaseModel):
    """Read-only. Keys of a newer version are passed over: an older reader still reads the rest."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Spread(_Stored):
    """A time's distribution over requests, in seconds: the median and the 95th percentile."""

    p50: _Seconds
    p95: _Seconds | None = None


class Cell(_Stored):
    """One load and what it measured. A measure is None where it was not taken.

    Attributes:
        concurrency: requests at a time.
        prompt_tokens: the context tier, as given to the load generator.
        max_tokens: bound of an answer's length.
        sampling_temperature: of the requests; 0 is greedy.
        ttft: time to the first token.
        tpot: time per output token after the first.
        decode: tokens/s of one stream while decoding, median over requests.
        decode_total: tokens/s of all streams together.
        prefill: tokens/s of the prompt.
        acceptance: accepted ÷ draft tokens, from vLLM's counters.
        acceptance_length: mean tokens per target step, 1 + accepted ÷ drafts.
    """

    category: Kind
    concurrency: _Least1
    prompt_tokens: _Count
    max_tokens: _Least1
    sampling_temperature: Annotated[float, Field(ge=0, le=100)] = 0.0
    requests: _Count
    errors: _Count = 0
    ttft: Spread | None = None
    tpot: Spread | None = None
    decode: _Rate | None = None
    decode_total: _Rate | None = None
    prefill: _Rate | None = None
    acceptance: _Share | None = None
    acceptance_length: Annotated[float, Field(ge=1, le=_MOST)] | None = None

    @property
    def load(self) -> tuple[Kind, int, int, int, float]:
        """What makes two cells of different runs comparable."""
        return (
            self.category,
            self.concurrency,
            self.prompt_tokens,
            self.max_tokens,
            self.sampling_temperature,
        )


class ImageRun(_Stored):
    """The image that served: ``name`` with its tag, ``digest`` as ``sha256:...`` where known."""

    name: str
    digest: str | None = None


class GpuRun(_Stored):
    """The GPU and its state while it was measured; None where the driver would not say.

    Attributes:
        sm_clock_mhz: of the multiprocessors, median over the run.
        sm_clock_max_mhz: the most that the driver allows.
        temperature_c: degrees Celsius, the highest of the run.
        power_w: drawn, median over the run.
    """

    name: str
    driver: str | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None


class LoadGenerator(_Stored):
    """What sent the requests, and its command line without secrets."""

    name: str
    version: str | None = None
    command: tuple[str, ...] = ()


class Result(_Stored):
    """One run of a benchmark on one service of one host.

    Attributes:
        when: the start; given in any zone, kept in UTC.
        recipe: the catalog's recipe.
        models: repository -> commit.
        release: id of the release that ran.
        vllm: version.
        kernel: Linux's release on the host.
        settings: vLLM arguments that ran, as far as they matter to a comparison.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    version: Annotated[int, Field(alias="schema", ge=1, le=SCHEMA)] = SCHEMA
    host: Folder
    service: Folder
    when: Moment
    recipe: str | None = None
    image: ImageRun
    models: dict[str, str]
    release: str | None = None
    vllm: str | None = None
    kernel: str | None = None
    gpu: GpuRun
    settings: dict[str, Scalar] = Field(default_factory=dict)
    generator: LoadGenerator
    cells: tuple[Cell, ...]

    @property
    def tag(self) -> str | None:
        """The image's tag; None for a name without one."""
        tag = self.image.name.rpartition(":")[2]
        return None if tag == self.image.name or "/" in tag else tag


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """What may explain that two runs differ: name and value, in the order of a table."""
    for name, value in (
        ("image", result.image.digest or result.image.name),
        ("release", result.release),
        *((f"model {repository}", commit) for repository, commit in sorted(result.models.items())),
        ("vLLM", result.vllm),
        ("GPU", result.gpu.name),
        ("driver", result.gpu.driver),
        ("kernel", result.kernel),
        ("load generator", f"{result.generator.name} {result.generator.version or ''}".strip()),
        *((f"setting {key}", str(value)) for key, value in sorted(result.settings.items())),
    ):
        if value is not None:
            yield name, value
