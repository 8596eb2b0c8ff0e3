"""The SBOM of a release: every pin of a user's install and of a host, with its hashes."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from sparkwright import __version__
from tests.unit.builders import ROOT


def test_every_pin_is_a_component_with_its_hashes(tmp_path: Path) -> None:
    file = tmp_path / "wheel.cdx.json"
    command = [ROOT / ".ci/sbom.sh", Path(sys.executable).parent / "cyclonedx-py", file]
    subprocess.run(command, check=True, capture_output=True)
    written = file.read_bytes()
    document: dict[str, Any] = json.loads(written)
    assert document["bomFormat"] == "CycloneDX"
    component = document["metadata"]["component"]
    assert (component["name"], component["version"]) == ("sparkwright", __version__)
    hashes = {
        pin["purl"]: [value["content"] for value in pin["externalReferences"][0]["hashes"]]
        for pin in document["components"]
    }
    text = (ROOT / "constraints.txt").read_text()
    pins = re.findall(
        r"^([\w.-]+)==(\S+) ((?:\\\n +--hash=sha256:[0-9a-f]+ ?)+)", text, re.MULTILINE
    )
    assert len(pins) == text.count("==") > 30
    for name, version, lines in pins:
        assert set(hashes[f"pkg:pypi/{name}@{version}"]) == set(re.findall(r"[0-9a-f]{64}", lines))
    assert any(purl.startswith("pkg:pypi/hf-transfer@") for purl in hashes)
    # One run is enough for the schema, which takes longer than the writing.
    subprocess.run([*command, "--no-validate"], check=True, capture_output=True)
    assert file.read_bytes() == written
