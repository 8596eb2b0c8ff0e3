"""Debian packages that a bundle brings to hosts without internet: HAProxy, and what it needs.

apt-get fetches them, and checks their signatures, on a machine with internet and the hosts' own
distribution. The lock pins them: a bundle travels, and what it brings is installed as root.
"""

import hashlib
import re
from pathlib import Path

from sparkwright.findings.user_error import Problems
from sparkwright.resolve.hub import PinnedFile
from sparkwright.resolve.lock import read_lock
from sparkwright.resolve.messages import MESSAGES
from sparkwright.resolve.registry import ARCHITECTURES

_FOLDER = "packages"
#: ``haproxy_2.8.5-1ubuntu3_arm64.deb``; apt-get writes an epoch's colon as %3a.
_NAME = re.compile(r"([a-z0-9][a-z0-9.+-]+)_([A-Za-z0-9.+~%-]+)_([a-z0-9]+)\.deb")


def collect(source: Path, bundle: Path) -> dict[str, PinnedFile]:
    """Copy a folder's packages into a bundle; their pins, by file name.

    Raises:
        UserError: for a folder without HAProxy's package.
    """
    paths = [path for path in sorted(source.glob("*.deb")) if _NAME.fullmatch(path.name)]
    if not any(path.name.startswith("haproxy_") for path in paths):
        raise MESSAGES.refusal("no-haproxy", f"--packages {source}")
    folder = bundle / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    pins = {}
    for path in paths:
        content = path.read_bytes()
        (folder / path.name).write_bytes(content)
        pins[path.name] = PinnedFile(size=len(content), sha256=_sha256(content))
    return pins


def versions(bundle: str | None, lock_file: str, architecture: str) -> dict[str, str]:
    """The locked packages for an architecture (as ``uname -m`` has it): name -> version."""
    names = (_NAME.fullmatch(name) for name in _pins(bundle, lock_file, architecture))
    return {name[1]: name[2].replace("%3a", ":") for name in names if name}


def brought(bundle: str | None, lock_file: str, architecture: str) -> dict[str, bytes]:
    """The locked packages for an architecture, by file name; none without a bundle.

    Raises:
        UserError: for a package that is missing, or is not the locked package.
    """
    result, problems = {}, Problems()
    for name, pin in _pins(bundle, lock_file, architecture).items():
        path = Path(bundle or "", _FOLDER, name)
        content = path.read_bytes() if path.is_file() else None
        if content is None or _sha256(content) != pin.sha256:
            message = "missing-package" if content is None else "changed-package"
            problems.append(MESSAGES.mistake(message, str(path), lock=lock_file))
        else:
            result[name] = content
    problems.stop()
    return result


def _pins(bundle: str | None, lock_file: str, architecture: str) -> dict[str, PinnedFile]:
    lock = read_lock(Path(lock_file)) if bundle else None
    suffixes = (f"_{ARCHITECTURES.get(architecture, architecture)}.deb", "_all.deb")
    packages = (lock.packages or {}) if lock else {}
    return {name: pin for name, pin in packages.items() if name.endswith(suffixes)}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
