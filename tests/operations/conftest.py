"""pyinfra as a library: tests of commands leave it as its own command line has it."""

import pyinfra
import pytest


@pytest.fixture(autouse=True)
def _a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyinfra, "is_cli", False)
