from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.host.ranks.units import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters, and ends them."""
    made: list[Cluster] = []

    def make(ranks: int = 2, answers_at: int | None = None) -> Cluster:
        made.append(Cluster(tmp_path / str(len(made)), ranks, answers_at=answers_at))
        return made[-1]

    yield make
    for item in made:
        item.stop()
