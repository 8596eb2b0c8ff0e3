"""Builds an image on the host from files that the controller brought. Runs as a job, as root.

The base is pulled by digest and given the name that the Dockerfile knows it by, so that a tag
that has moved since changes nothing.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def main(path: str) -> int:
    """Request: ``image``, ``base``, ``base_name``, ``files`` (path -> [base64, executable])."""
    request = json.loads(Path(path).read_text())
    with tempfile.TemporaryDirectory(prefix="sparkwright-build-") as folder:
        for name, (content, executable) in request["files"].items():
            place = Path(folder, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(base64.b64decode(content))
            place.chmod(0o755 if executable else 0o644)
        for command in (
            ["docker", "pull", "--quiet", request["base"]],
            ["docker", "tag", request["base"], request["base_name"]],
            ["docker", "build", "--tag", request["image"], folder],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = (done.stderr or done.stdout).strip().splitlines()
                print(f"{' '.join(command[:2])}: {said[-1] if said else 'failed'}", flush=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
