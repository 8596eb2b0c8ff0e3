"""The runtime of a bundle that was carried from elsewhere: taken only if it is the pinned one.

Everything else in such a directory is checked against the lock. This is a part of sparkwright, so
sparkwright itself says what it is, whatever the directory or a lock claim.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from pathlib import Path

from sparkwright.resolve.runtime import PYTHONS, Runtime, RuntimeBundleError, name_of

#: The tar that this version's pins make, by architecture and Python: .ci/pins.sh writes it.
DIGESTS = Path(__file__).with_name("runtime_digests.json")
_MOST_BYTES = 256 << 20


def pinned_digest(arch: str, python: str) -> str:
    """The sha256 of the bundle that this version's pins make.

    Raises RuntimeBundleError for a kind of host that there is none for.
    """
    known: dict[str, str] = json.loads(DIGESTS.read_text(encoding="utf-8"))
    try:
        return known[f"{arch}-py{python}"]
    except KeyError:
        raise RuntimeBundleError(
            f"No runtime for {arch}, Python {python}: give the host one of {', '.join(PYTHONS)}."
        ) from None


def carried_runtime(arch: str, python: str, directory: Path) -> Runtime:
    """Return the bundle of a directory that was carried here: only the very one that is pinned.

    What lies beside it, its index too, is not asked: whoever carried the directory may have
    changed it.
    Raises RuntimeBundleError with a message for the user.
    """
    digest = pinned_digest(arch, python)
    path = directory / name_of(arch, python, digest)
    again = (
        "Make the bundle again with this version of sparkwright: "
        f"sparkwright bundle INVENTORY DIRECTORY --python {python}"
    )
    try:
        with gzip.open(path) as file:
            tar = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise RuntimeBundleError(f"The bundle has no {path.name}. {again}.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise RuntimeBundleError(f"{path} can't be read: {error}. {again}.") from None
    if hashlib.sha256(tar).hexdigest() != digest:
        raise RuntimeBundleError(
            f"{path} is not the runtime that this version of sparkwright pins (sha256 {digest}): "
            f"it was changed, and is not used. {again}."
        )
    return Runtime(path, digest, path.stat().st_size)
