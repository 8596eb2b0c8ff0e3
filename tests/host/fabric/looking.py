"""Inspect captured trees, as the program does on a host."""

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

import pytest

from lab.fabric import tree
from lab.fabric.tree import Spark
from sparkwright.host import fabric
from sparkwright.host.fabric import FabricRequest, FabricState

Look = Callable[[Iterable[Spark]], dict[str, FabricState]]


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Findings of the program on each Spark, by ``spark-1``, ``spark-2``, ..."""

    times = count()

    def looked(sparks: Iterable[Spark]) -> dict[str, FabricState]:
        fabric_states = {}
        folder = tmp_path / str(next(times))
        for spark in sparks:
            root = folder / f"spark-{spark.number}"
            tree.write(spark, root)
            monkeypatch.setenv("PATH", f"{root}/bin:/usr/bin:/bin")
            fabric_states[root.name] = fabric.main(FabricRequest(str(root), ask=False))
        return fabric_states

    return looked
