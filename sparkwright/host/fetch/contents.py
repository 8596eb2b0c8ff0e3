"""Is what was fetched what the catalog says it is? Judged from headers and small files alone.

Hashes prove that the bytes are the repository's; they say nothing of a repository that was
published wrong: tensors under other names, a missing shard, another quantization.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: No header of a real model is larger; a larger figure is no header.
_MOST_HEADER = 100 << 20
_FEW = 3


def faults(base: Path, names: Iterable[str], expect: dict[str, Any]) -> list[str]:
    """Everything that is wrong with a model's files, in words.

    expect: {"format": "modelopt", "compressed-tensors", "bf16" or null,
    "checks": [{"id", "why", and either "absent": prefix of tensor names, "present": prefix, or
    "file", "key", "contains": values of a list in a JSON file}]}
    """
    files = sorted(names)
    wrong: list[str] = []
    tensors: dict[str, set[str]] = {}
    for name in files:
        if name.endswith(".safetensors"):
            found = _header(base / name)
            if isinstance(found, str):
                wrong.append(f"{name} {found}")
            else:
                tensors[name] = found
    for name in files:
        if name.endswith(".safetensors.index.json"):
            wrong += _index(base, name, set(files), tensors)
    if not wrong:
        wrong += _format(base, expect.get("format"))
    every = set().union(*tensors.values()) if tensors else set()
    for check in expect.get("checks", ()):
        said = _check(base, every, check)
        if said:
            wrong.append(f"{said} [{check['id']}]: {check['why']}")
    return wrong


def _header(path: Path) -> set[str] | str:
    """Names of the tensors of a safetensors file, or what is wrong with it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(_MOST_HEADER, size - 8):
            return "is no safetensors file"
        try:
            header = json.loads(file.read(length))
        except ValueError:
            return "has a header that can't be read"
    if not isinstance(header, dict):
        return "has a header that can't be read"
    header.pop("__metadata__", None)
    ends = [entry["data_offsets"][1] for entry in header.values() if isinstance(entry, dict)]
    if max(ends, default=0) + 8 + length != size:
        return f"has {size} bytes, its header speaks of {max(ends, default=0) + 8 + length}"
    return set(header)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _index(base: Path, name: str, files: set[str], tensors: dict[str, set[str]]) -> list[str]:
    index = _json(base / name)
    places = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(places, dict):
        return [f"{name} has no weight_map"]
    folder = name.rpartition("/")[0]
    prefix = f"{folder}/" if folder else ""
    shards = {f"{prefix}{shard}" for shard in places.values()}
    wrong = [f"{name} names {shard}, which is not there" for shard in sorted(shards - files)]
    lost = sorted(
        tensor
        for tensor, shard in places.items()
        if tensor not in tensors.get(f"{prefix}{shard}", {tensor})
    )
    if lost:
        more = f" and {len(lost) - _FEW} more" if len(lost) > _FEW else ""
        wrong.append(f"tensors are not where {name} says: {', '.join(lost[:_FEW])}{more}")
    return wrong


def _format(base: Path, wanted: str | None) -> list[str]:
    """The format by config.json, where both it and the catalog tell one."""
    config = _json(base / "config.json")
    if wanted is None or not isinstance(config, dict):
        return []
    quantization = config.get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, dict) else None
    if method is None and (base / "hf_quant_config.json").is_file():
        method = "modelopt"
    found = {None: "bf16", "modelopt": "modelopt", "modelopt_fp4": "modelopt"}.get(method, method)
    if found == wanted:
        return []
    return [f"the weights are {found}, and the catalog says {wanted}"]


def _check(base: Path, tensors: set[str], check: dict[str, Any]) -> str | None:
    if "absent" in check:
        hits = sorted(name for name in tensors if name.startswith(check["absent"]))
        return f"{len(hits)} tensors are named {check['absent']}..." if hits else None
    if "present" in check:
        found = any(name.startswith(check["present"]) for name in tensors)
        return None if found else f"no tensor is named {check['present']}..."
    document = _json(base / check["file"])
    value = document.get(check["key"]) if isinstance(document, dict) else None
    listed = value if isinstance(value, list) else [value]
    missing = [item for item in check["contains"] if item not in listed]
    if not missing:
        return None
    return f"{check['key']} of {check['file']} lacks {', '.join(map(str, missing))}"
