"""A model that answers, and a site whose host serves it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.extras.chat.model import Model, speaking
from tests.unit.site_terminal import written


@pytest.fixture
def model() -> Iterator[Model]:
    with speaking(Model()) as model:
        yield model


@pytest.fixture
def site(tmp_path: Path, model: Model) -> Path:
    return written(tmp_path / "site", model.port)


@pytest.fixture
def inner_site(tmp_path: Path, model: Model) -> Path:
    """A site whose service listens only on its host."""
    return written(tmp_path / "site", model.port, "192.0.2.1", ', "bind": "127.0.0.1"')
