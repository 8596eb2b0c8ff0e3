"""Compare fetched files with the catalog's data on the model, using only headers and small files.

Hashes prove that the bytes are the repository's. Hashes do not find mistakes in the repository
itself: renamed tensors, a missing shard, another quantization.
"""

from collections.abc import Iterable
from pathlib import Path

from sparkwright.host.fetch.request import ContentCheck, ExpectedContents
from sparkwright.host.lib import documents

#: Largest header of a safetensors file, in bytes; real models stay below it.
_LARGEST_HEADER = 100 << 20
_FEW = 3
#: ``quant_method`` of config.json -> the catalog's name of the format, if the names differ.
_FORMATS = {
    None: "bf16",
    "modelopt_fp4": "modelopt",
    "auto-round": "autoround",
    "intel/auto-round": "autoround",
}


def faults(base: Path, names: Iterable[str], expect: ExpectedContents) -> list[str]:
    """Return every fault of a model's files, one sentence for each fault."""
    files = sorted(names)
    problems: list[str] = []
    tensors: dict[str, set[str]] = {}
    for name in files:
        if name.endswith(".safetensors"):
            try:
                tensors[name] = _tensors(base / name)
            except ValueError as error:
                problems.append(f"{name} {error}")
        elif name.endswith(".gguf"):
            with (base / name).open("rb") as file:
                problems += [f"{name} is not a GGUF file"] * (file.read(4) != b"GGUF")
    for name in files:
        if name.endswith(".safetensors.index.json"):
            problems += _index(base, name, set(files), tensors)
    if not problems:
        problems += _format(base, expect.format)
    every = set().union(*tensors.values())
    for check in expect.checks:
        if fault := _check(base, every, check):
            problems.append(f"{fault} [{check.id}]: {check.why}")
    return problems


def _tensors(path: Path) -> set[str]:
    """Return the tensor names of a safetensors file. Raises ValueError if the file is damaged."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_LARGEST_HEADER, size - 8):
            raise ValueError("is not a safetensors file")
        header = documents.parsed(file.read(length))
    if header is None:
        raise ValueError("has a header that is not valid JSON")
    header.pop("__metadata__", None)
    ends = [entry["data_offsets"][1] for entry in header.values() if isinstance(entry, dict)]
    if max(ends, default=0) + 8 + length != size:
        raise ValueError(f"has {size} bytes, but {max(ends, default=0) + 8 + length} by its header")
    return set(header)


def _index(base: Path, name: str, files: set[str], tensors: dict[str, set[str]]) -> list[str]:
    places = (documents.read(base / name) or {}).get("weight_map")
    if not isinstance(places, dict):
        return [f"{name} has no weight_map"]
    folder = name.rpartition("/")[0]
    prefix = f"{folder}/" if folder else ""
    shards = {f"{prefix}{shard}" for shard in places.values()}
    problems = [f"{name} names {shard}, which is missing" for shard in sorted(shards - files)]
    lost = sorted(
        tensor
        for tensor, shard in places.items()
        if tensor not in tensors.get(f"{prefix}{shard}", {tensor})
    )
    if lost:
        more = f" and {len(lost) - _FEW} more" if len(lost) > _FEW else ""
        problems.append(f"tensors are not in the files that {name} names: "
                     f"{', '.join(lost[:_FEW])}{more}")  # fmt: skip
    return problems


def _format(base: Path, expected: str | None) -> list[str]:
    """Compare the format in config.json with the catalog's, if both name a format."""
    config = documents.read(base / "config.json")
    if expected is None or config is None:
        return []
    quantization = config.get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, dict) else None
    if method is None and (base / "hf_quant_config.json").is_file():
        method = "modelopt"
    result = _FORMATS.get(method, method)
    if result == expected:
        return []
    return [f"the weights are {result}, but {expected} in the catalog"]


def _check(base: Path, tensors: set[str], check: ContentCheck) -> str | None:
    if check.absent is not None:
        count = sum(name.startswith(check.absent) for name in tensors)
        return f"{count} tensors are named {check.absent}..." if count else None
    if check.present is not None:
        result = any(name.startswith(check.present) for name in tensors)
        return None if result else f"no tensor is named {check.present}..."
    value = (documents.read(base / (check.file or "")) or {}).get(check.key or "")
    values = value if isinstance(value, list) else [value]
    missing = [item for item in check.contains or () if item not in values]
    if not missing:
        return None
    return f"{check.key} of {check.file} lacks {', '.join(map(str, missing))}"
