"""The wheel's SBOM: every pin with its hashes, and the wheel's own."""

from __future__ import annotations

import hashlib
import json
import runpy
import subprocess
import sys
from pathlib import Path

from tests.unit.builders import ROOT

SCRIPT = ROOT / ".ci/sbom.py"


def test_every_pin_is_a_component_with_its_hashes(tmp_path: Path) -> None:
    wheel = tmp_path / "sparkwright-0.2.0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    subprocess.run([sys.executable, SCRIPT, wheel], check=True, stdout=subprocess.DEVNULL)
    written = (tmp_path / "sparkwright-0.2.0-py3-none-any.cdx.json").read_text()
    document = json.loads(written)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    own = document["metadata"]["component"]
    assert own["purl"] == "pkg:pypi/sparkwright@0.2.0"
    assert own["hashes"][0]["content"] == hashlib.sha256(b"a wheel").hexdigest()
    components = {one["name"]: one for one in document["components"]}
    text = (ROOT / "constraints.txt").read_text()
    pinned = runpy.run_path(str(SCRIPT))["pins"](text)
    assert len(pinned) == sum("==" in line for line in text.splitlines())
    for (name, version), hashes in pinned.items():
        assert components[name]["version"] == version
        assert {one["content"] for one in components[name]["hashes"]} >= set(hashes)
        assert hashes
    (dependency,) = document["dependencies"]
    names = {purl.partition("@")[0] for purl in dependency["dependsOn"]}
    assert {"pkg:pypi/pyinfra", "pkg:pypi/huggingface-hub", "pkg:pypi/pydantic"} <= names
    subprocess.run([sys.executable, SCRIPT, wheel], check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "sparkwright-0.2.0-py3-none-any.cdx.json").read_text() == written
