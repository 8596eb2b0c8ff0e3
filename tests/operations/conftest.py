"""pyinfra as a library: tests restore its state, as the end of its command line would."""

from pathlib import Path
from typing import Any

import pyinfra
import pytest

from sparkwright.resolve.runtime import Runtime


@pytest.fixture(autouse=True)
def _a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyinfra, "is_cli", False)


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Fake the bundles of the fetch program's libraries, without PyPI and a terminal; return the
    architecture and cache of each build.
    """
    archive = tmp_path / "libraries.tar.gz"
    archive.write_bytes(b"libraries")
    built: list[Any] = []

    def build(architecture: str, cache: Path) -> Runtime:
        built.append((architecture, cache))
        return Runtime(archive, "f" * 64)

    monkeypatch.setattr("sparkwright.operations.lib.runtime.build_runtime", build)
    monkeypatch.setattr("sparkwright.operations.lib.runtime.carried_runtime", build)
    monkeypatch.setattr("sparkwright.operations.lib.progress.LIVE.on", False)
    return built
