#!/usr/bin/env bash
# Write the SBOM (CycloneDX, JSON) of what a user's install and a host get: sbom.sh CYCLONEDX_PY FILE [OPTION...]
# The same pins give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
# The generator reads no version that a build backend computes.
project=$(mktemp)
trap 'rm -f "$project"' EXIT
version=$(sed -n 's/^__version__ = //p' sparkwright/__init__.py)
sed "s/^dynamic = .*/version = $version/" pyproject.toml > "$project"
cat constraints.txt sparkwright/resolve/runtime_requirements.txt |
    "$1" requirements - --pyproject "$project" --mc-type library --output-reproducible \
        --output-file "$2" "${@:3}"
