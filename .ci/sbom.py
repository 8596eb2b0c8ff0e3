"""Writes what a wheel needs, with versions and hashes: CycloneDX 1.5 as JSON, beside the wheel.

    python .ci/sbom.py dist/sparkwright-0.2.0-py3-none-any.whl

The components are those of constraints.txt, which a user installs, and of the libraries that hosts
get. The same wheel and pins give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
RUNTIME = ROOT / "sparkwright/resolve/runtime_requirements.txt"
_PIN = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def pins(text: str) -> dict[tuple[str, str], list[str]]:
    """Name and version -> sha256 of every file that may be installed for them."""
    found = list(_PIN.finditer(text))
    ends = [one.start() for one in found[1:]] + [len(text)]
    return {
        (_normal(one[1]), one[2]): sorted(set(_HASH.findall(text[one.end() : end])))
        for one, end in zip(found, ends, strict=True)
    }


def sbom(wheel: Path) -> dict[str, Any]:
    """The document of a wheel."""
    name, version = wheel.name.split("-")[:2]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    known: dict[tuple[str, str], list[str]] = {}
    for file in (CONSTRAINTS, RUNTIME):
        for pin, hashes in pins(file.read_text(encoding="utf-8")).items():
            known[pin] = sorted({*known.get(pin, ()), *hashes})
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    direct = {_normal(re.split(r"[^\w.-]", one)[0]) for one in project["dependencies"]}
    own = _component(name, version, [digest])
    own["licenses"] = [{"license": {"id": project["license"]}}]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {"component": own},
        "components": [_component(*pin, hashes) for pin, hashes in sorted(known.items())],
        "dependencies": [
            {
                "ref": own["bom-ref"],
                "dependsOn": sorted(_purl(*pin) for pin in known if pin[0] in direct),
            }
        ],
    }


def _component(name: str, version: str, hashes: list[str]) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": _purl(name, version),
        "name": name,
        "version": version,
        "purl": _purl(name, version),
        "hashes": [{"alg": "SHA-256", "content": one} for one in hashes],
    }


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    made = Path(sys.argv[1])
    place = made.with_suffix(".cdx.json")
    place.write_text(json.dumps(sbom(made), indent=1) + "\n", encoding="utf-8")
    print(place)
