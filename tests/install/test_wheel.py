"""The wheel contains the library and its data once, and no file of tests and lab."""

import email
import tarfile
import zipfile
from pathlib import Path

import pytest

from sparkwright import __version__
from sparkwright.config.skeleton import FILES
from tests.install.conftest import built
from tests.unit.builders import ROOT

DATA = "sparkwright/_data"


@pytest.fixture(scope="module")
def carried(wheel: Path) -> dict[str, bytes]:
    """Content by path."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _below(folder: str) -> dict[str, bytes]:
    return {
        str(path.relative_to(ROOT)): path.read_bytes()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_has_only_library_roles_and_metadata(carried: dict[str, bytes]) -> None:
    metadata = f"sparkwright-{__version__}.dist-info"
    assert {name.partition("/")[0] for name in carried} == {"sparkwright", "roles", metadata}


def test_the_wheel_has_every_file_of_library_and_roles(carried: dict[str, bytes]) -> None:
    ours = _below("sparkwright").keys() | _below("roles").keys()
    pages = {name for name in ours if name.startswith("docs/generate/")}
    assert ours - pages == {
        name for name in carried if name.startswith(("sparkwright/", "roles/"))
        and not name.startswith(f"{DATA}/")
    }  # fmt: skip
    assert "sparkwright/py.typed" in carried
    assert "sparkwright/resolve/runtime_requirements.txt" in carried


def test_roles_are_a_namespace_that_a_site_joins(carried: dict[str, bytes]) -> None:
    assert "roles/__init__.py" not in carried
    assert "roles/preflight/__init__.py" in carried


def test_the_wheel_has_catalog_templates_and_site_of_the_checkout(
    carried: dict[str, bytes],
) -> None:
    data = {
        **_below("catalog"), **_below("templates"),
        **{f"site/{name}": (ROOT / name).read_bytes() for name in FILES},
        "constraints-bench.txt": (ROOT / "constraints-bench.txt").read_bytes(),
    }  # fmt: skip
    result = {
        name.removeprefix(f"{DATA}/"): content
        for name, content in carried.items()
        if name.startswith(f"{DATA}/")
    }
    assert result.keys() == data.keys()
    assert result == data


def test_metadata_names_version_and_licence_and_no_development_tools(
    carried: dict[str, bytes],
) -> None:
    info = f"sparkwright-{__version__}.dist-info"
    metadata = email.message_from_bytes(carried[f"{info}/METADATA"])
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert b"Apache License" in carried[f"{info}/licenses/LICENSE"]
    assert b"sparkwright = sparkwright.cli:main" in carried[f"{info}/entry_points.txt"]
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert any(line.startswith("pyinfra") for line in needed)
    assert not any(line.startswith(("pytest", "mypy", "ruff", "hypothesis")) for line in needed)


def test_the_sdist_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    again = built(tmp_path / "again", "wheel", source)
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()
