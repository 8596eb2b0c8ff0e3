"""Every flag of foreign recipes, against a second reading of the same recipes."""

import os
import shutil
from pathlib import Path

import pytest

from tests.unit.extras.imports.independent_reading import compared
from tests.unit.extras.imports.recipes import REGISTRY

#: Folders of checked-out registries, joined by ``:``.
REGISTRIES = [Path(path) for path in os.environ.get("RECIPE_REGISTRIES", "").split(":") if path]


def test_importer_and_second_reader_agree_on_sparkruns_flags() -> None:
    counted, differ = compared(REGISTRY)
    assert not differ
    assert counted == {"in part": 4, "refused": 3}


@pytest.mark.skipif(not REGISTRIES, reason="RECIPE_REGISTRIES=FOLDER:… names registries")
@pytest.mark.parametrize(
    ("gpu", "box"), [("gb10", "dgx_spark_gb10"), ("rtx5090", "rtx_5090"), ("h200", "h200")]
)
@pytest.mark.parametrize("registry", REGISTRIES, ids=str)
def test_importer_and_second_reader_agree_on_a_public_registrys_flags(
    registry: Path, gpu: str, box: str
) -> None:
    if (registry / "src/lib").is_dir() and not shutil.which("node"):
        pytest.skip("no node on the path")
    counted, differ = compared(registry, box, gpu=gpu)
    assert counted
    assert not differ
