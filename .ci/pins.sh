#!/usr/bin/env bash
# Write constraints.txt (packages of a user's install) and constraints-dev.txt (further packages of
# development) from pyproject.toml. Pins that still fit stay; UPGRADE=1 takes the newest versions.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check 'pip-tools>=7.5,<8'
options=(--quiet --generate-hashes --strip-extras --no-annotate --no-header --allow-unsafe
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options)
[[ -z "${UPGRADE:-}" ]] || options+=(--upgrade)
"$work/venv/bin/pip-compile" "${options[@]}" --output-file constraints.txt pyproject.toml
cat constraints.txt constraints-dev.txt > "$work/all.txt"
"$work/venv/bin/pip-compile" "${options[@]}" --extra dev --output-file "$work/all.txt" pyproject.toml
"$work/venv/bin/python" - "$work/all.txt" <<'PYTHON'
import re, sys
from pathlib import Path

def pins(file):  # "name==version \" and its hashes, by name==version
    return dict(re.findall(r"^(\S+==\S+)( .*\n(?:    .*\n?)*)", Path(file).read_text(), re.M))

runtime, everything = pins("constraints.txt"), pins(sys.argv[1])
other = runtime.keys() - everything.keys()
if other:
    sys.exit(f"development needs another version of {', '.join(sorted(other))}")
own = {name: rest for name, rest in everything.items() if name not in runtime}
Path("constraints-dev.txt").write_text(
    "# What development needs beside constraints.txt: `make pins`.\n"
    + "".join(name + rest for name, rest in own.items())
)
PYTHON
# Hashes of the bundles for hosts, which are built from sparkwright/resolve/runtime_requirements.txt.
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r constraints.txt
"$work/venv/bin/python" - <<'PYTHON'
import hashlib, json
from sparkwright.resolve import runtime

found = {"pins": hashlib.sha256(runtime.REQUIREMENTS.read_bytes()).hexdigest()}
for arch in runtime.ARCHITECTURES:
    found[arch] = hashlib.sha256(runtime.pack(arch)).hexdigest()
runtime.DIGESTS.write_text(json.dumps(found, indent=1) + "\n")
PYTHON
