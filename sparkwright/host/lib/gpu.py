"""nvidia-smi: one query, and a parser that requires no field."""

import re
from collections.abc import Callable
from functools import partial

from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.processes import Running
from sparkwright.host.lib.records import dataclass

#: Compute capabilities of GPUs that share the machine's memory.
UNIFIED = ("12.1",)


@dataclass(frozen=True)
class Gpu:
    """GPU of a host. Values that the driver does not report (``[N/A]`` on a GB10) are None.

    Attributes:
        name: e.g. ``NVIDIA GB10``.
        compute_cap: e.g. ``12.1``.
        driver: e.g. ``580.95.05``.
        memory_mib: mebibytes of the GPU's own memory; None on unified memory (GB10).
        memory_used_mib: used mebibytes of the GPU's own memory.
        temperature_c, power_w: degrees Celsius and watts.
        busy_percent: share of the last sampling period in which the GPU computed.
        clock_mhz, clock_max_mhz: present and highest clock of the multiprocessors.
        index, uuid: names of the GPU in Docker and nvidia-smi; the index can change with the slot.
        event_reasons: bits of clocks_event_reasons.active; 0 if not reported.
    """

    name: str
    compute_cap: str | None = None
    driver: str | None = None
    memory_mib: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    busy_percent: float | None = None
    clock_mhz: float | None = None
    clock_max_mhz: float | None = None
    event_reasons: int = 0
    index: int | None = None
    uuid: str | None = None
    memory_used_mib: int | None = None

    @property
    def unified(self) -> bool:
        """Return whether CPU and GPU share memory, by the GPU's model and not by a missing
        number.
        """
        return self.compute_cap in UNIFIED or "GB10" in self.name


@dataclass(frozen=True)
class Gpus:
    """Result of a query to nvidia-smi.

    Attributes:
        installed: whether nvidia-smi is installed.
        code: exit code of nvidia-smi; None if the program hung or is missing.
        message: error message of a failed query.
        gpus: the listed GPUs.
    """

    installed: bool
    code: int | None
    message: str = ""
    gpus: tuple[Gpu, ...] = ()


#: Query fields: model, names and present state of a GPU.
IDENTITY = ("name", "compute_cap", "driver_version", "memory.total")
NAMES = ("index", "uuid")
STATE = (
    *("name", "driver_version", "temperature.gpu", "power.draw", "utilization.gpu"),
    *("clocks.sm", "clocks.max.sm", "clocks_event_reasons.active"),
)
#: Fields above, and the GPU's own memory, which a GB10 lacks.
LOAD = (*STATE, "memory.total", "memory.used")
#: Arguments that list the programs computing on a GPU, without the desktop's programs.
HOLDERS = ("--query-compute-apps=process_name,used_gpu_memory", "--format=csv,noheader")
#: Patterns of a number (``10.20 W``) and of mebibytes.
_NUMBER, _MIB = r"(-?\d+(?:\.\d+)?).*", r"(\d+)(?:\s*MiB)?"
#: Query field -> its name in a Gpu, the pattern of a valid value, and the value's conversion.
_FIELDS: dict[str, tuple[str, str, Callable[[str], object]]] = {
    "name": ("name", "(.*)", str),
    "compute_cap": ("compute_cap", r"(\d+\.\d+)", str),
    "driver_version": ("driver", r"(\d.*)", str),
    "memory.total": ("memory_mib", _MIB, int),
    "memory.used": ("memory_used_mib", _MIB, int),
    "temperature.gpu": ("temperature_c", _NUMBER, float),
    "power.draw": ("power_w", _NUMBER, float),
    "utilization.gpu": ("busy_percent", _NUMBER, float),
    "clocks.sm": ("clock_mhz", _NUMBER, float),
    "clocks.max.sm": ("clock_max_mhz", _NUMBER, float),
    "clocks_event_reasons.active": ("event_reasons", "(0[xX][0-9a-fA-F]+)", partial(int, base=16)),
    "index": ("index", "([0-9]{1,3})", int),
    "uuid": ("uuid", "(GPU-[0-9a-fA-F-]{36})", str),
}


class Question:
    """Process of nvidia-smi, which runs in parallel with other commands. Fields unknown to the
    driver are left out.
    """

    def __init__(self, fields: tuple[str, ...]) -> None:
        self._fields = fields
        query = f"--query-gpu={','.join(fields)}"
        self._running = Running("nvidia-smi", query, "--format=csv,noheader")

    def answer(self) -> Gpus:
        """Wait for the answer of nvidia-smi and parse it."""
        done = self._running.outcome()
        unknown = re.search(r'Field "([^"]+)" is not a valid field', done.out + done.err)
        if unknown and unknown[1] in self._fields and len(self._fields) > 1:
            rest = tuple(name for name in self._fields if name != unknown[1])
            return Question(rest).answer()
        if done.code == 0:
            return Gpus(True, 0, done.err.strip(), parse(done.out, self._fields))
        return Gpus(done.installed, done.code, (done.out + done.err).strip())


def ask(fields: tuple[str, ...] = STATE) -> Gpus:
    """Query nvidia-smi now."""
    return Question(fields).answer()


def parse(text: str, fields: tuple[str, ...] = IDENTITY) -> tuple[Gpu, ...]:
    """Return the GPUs of an answer. Lines without all the fields are messages, not GPUs.

    A GB10 reports ``[N/A]`` for some numbers, and other texts are possible. A text that is not a
    number becomes None, never an error.
    """
    rows = ([word.strip() for word in line.split(",")] for line in text.splitlines())
    return tuple(
        _gpu(dict(zip(fields, row, strict=True))) for row in rows if len(row) == len(fields)
    )


def holders(text: str) -> tuple[str, ...]:
    """Return the names of the programs in an answer to ``HOLDERS``."""
    return tuple(re.findall(r"^(.+), \d+ MiB$", text, re.MULTILINE))


def _gpu(fields: dict[str, str]) -> Gpu:
    values: dict[str, Any] = {}
    for field, text in fields.items():
        name, pattern, convert = _FIELDS[field]
        if match := re.fullmatch(pattern, text):
            values[name] = convert(match[1])
    return Gpu(**values)
