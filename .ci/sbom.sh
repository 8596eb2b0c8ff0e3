#!/usr/bin/env bash
# Write the SBOM (CycloneDX, JSON) of a user's install and of a host: sbom.sh CYCLONEDX_PY FILE [OPTION...]
# Equal pins make an equal file.
set -euo pipefail
cd "$(dirname "$0")/.."
# The generator cannot read a version that a build backend computes.
project=$(mktemp)
trap 'rm -f "$project"' EXIT
version=$(sed -n 's/^__version__ = //p' sparkwright/__init__.py)
sed "s/^dynamic = .*/version = $version/" pyproject.toml > "$project"
cat constraints.txt sparkwright/resolve/runtime_requirements.txt |
    "$1" requirements - --pyproject "$project" --mc-type library --output-reproducible \
        --output-file "$2" "${@:3}"
