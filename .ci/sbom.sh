#!/usr/bin/env bash
# Write the SBOM (CycloneDX, JSON) of what a user's install and a host get: sbom.sh CYCLONEDX_PY FILE
# The same pins give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
cat constraints.txt sparkwright/resolve/runtime_requirements.txt |
    "$1" requirements - --pyproject pyproject.toml --mc-type library --output-reproducible \
        --output-file "$2"
